#!/usr/bin/env python3
"""tests/chat/data/jinja.jsonl and styles.jsonl, by the Jinja environment of transformers.

jinja.jsonl: {"template", "text"} or {"template", "raised": true}; the variables are VARS.
styles.jsonl: {"template", "form", "messages", "generate", "text", "turns"}; turns: the [from, to)
characters of {% generation %} blocks, for templates that have some.
"""
import json
import os
import sys

from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../oracle")
from chat_templates import NONE, TEMPLATES  # noqa: E402

VARS = {"messages": [{"role": "system", "content": " S\n"}, {"role": "user", "content": "Qé中"},
                     {"role": "assistant", "content": "A"}],
        "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None}
JINJA = [
    "", "plain", "a\n", "a\n\n", "{{ 'x' }}\n", "\r\nx\r\ny\r", "{{ bos_token }}{{ nothing }}|{{ none }}{{ true }}{{ 12 }}",
    # white space
    "a {% if true %} b {% endif %} c", "a\n  {% if true %}\n b\n  {% endif %}\n c", "a \n {%- if true -%} \n b \n {%- endif -%} \n c",
    "  {{ 'x' }}\n  {{- 'y' -}}  \n z", "a\n  {# note #}\nb {# x #} c\n{#- y -#}\n d", "{%+ if true %} x{% endif +%}\n y",
    "x\n\t {%+ if true %}y{% endif %}\n\n z", "{% if true %}\n\n  {% if true %}a{% endif %}\n{% endif %}\n", " {%- set a = 1 %}\n  {%- set b = 2 %}\n{{ a + b }}",
    "a\u00a0{%- if true %}b{% endif %}", "{% set x = '%}' %}{{ x ~ '}}' }}",
    # literals and escapes
    r'''{{ 'a\n\t\\\'\"b' }}{{ "it's" }}{{ '\u00e9\x41' }}''', "{{ 'a' 'b' \"c\" }}", "{{ [1, 'a', true,] | length }}{{ {'a': 1, 'b': {'c': 2}}.b.c }}",
    # operators
    "{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 - 3 - 4 }}", "{{ 'a' ~ 1 ~ none ~ true }}", "{{ 'a' + 'b' ~ 'c' }}",
    "{{ 1 < 2 }}{{ 2 <= 1 }}{{ 'a' < 'b' }}{{ 1 == true }}{{ '1' == 1 }}{{ none == false }}{{ nothing == nothing }}{{ nothing == none }}",
    "{{ 'b' in 'abc' }}{{ 'x' not in 'abc' }}{{ 'role' in messages[0] }}{{ 2 in [1, 2] }}{{ not 1 in [1] }}{{ '' in '' }}",
    "{{ true and 'x' }}{{ '' or 'y' }}{{ 0 and 1 }}{{ not '' }}{{ not not 'a' }}{{ not 1 == 2 }}{{ [] or {} or 'z' }}",
    "{{ 'a' if 1 > 2 else 'b' }}{{ 'a' if false }}|{{ ('x' if true else 'y') ~ 'z' }}{{ 'p' if false else 'q' if false else 'r' }}",
    "{{ messages[0]['content'] | trim + '!' }}{{ ' a ' | trim ~ ' b ' }}", "{{ 3 * -1 }}{{ -(1 + 2) }}{{ '%s' }}",
    "{{ 'a' + 1 }}", "{{ nothing + 'a' }}", "{{ nothing.x }}", "{{ nothing['x'] }}", "{{ messages.x.y }}", "{{ 1 // 0 }}", "{{ messages[7] }}|{{ messages[0].x }}",
    # items and slices
    "{{ messages[1].content[0] }}{{ messages[-1]['role'] }}{{ 'h\u00e9llo'[1] }}{{ 'h\u00e9llo'[-1] }}{{ 'abc'[5] }}",
    "{{ 'abcdef'[1:4] }}{{ 'abcdef'[::-1] }}{{ 'abcdef'[-2:] }}{{ 'abcdef'[::2] }}{{ 'abcdef'[4:1:-1] }}{{ 'abc'[10:] }}{{ 'ab'[-9:1] }}",
    "{% for m in messages[::-1] %}{{ m.role }}{{ loop.index0 }}{% endfor %}", "{{ messages[1:] | length }}{{ messages[:1][0].role }}{{ ([1, 2] + [3])[2] }}",
    # filters, tests, methods
    "{{ 'h\u00e9' | length }}{{ messages | length }}{{ messages[0] | length }}{{ 'aB' | upper }}{{ 'aB' | lower }}{{ [1, 2] | first }}{{ [1, 2] | last }}",
    "{{ nothing | default('d') }}{{ '' | default('d') }}{{ '' | default('d', true) }}{{ [1, 'a'] | join('-') }}{{ 'abc' | replace('b', 'X') }}{{ 'x' | string }}",
    "{{ nothing is defined }}{{ messages is defined }}{{ tools is none }}{{ 'a' is string }}{{ messages[0] is mapping }}{{ 'a' is iterable }}{{ 3 is odd }}{{ 1 is number }}",
    "{{ messages is sequence }}{{ 'a' is not string }}{{ 1 is eq 1 }}{{ 'a' is in ['a'] }}{{ 3 is equalto 4 }}{{ true is boolean }}{{ not nothing is defined }}{{ false is false }}",
    "{{ '  a '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ '\n a\n'.lstrip('\n') }}|{{ 'a\n\n'.rstrip('\n') }}|{{ 'éaé'.strip('é') }}|",
    "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('bc') }}{{ 'a,b,c'.split(',')[1] }}{{ 'abc'.split('x') | length }}{{ 'a</t>b</t>c'.split('</t>')[-1] }}",
    "{{ 'Ab'.upper() }}{{ 'Ab'.lower() }}{{ 'aXbX'.replace('X', '') }}{{ messages[0].get('role') }}{{ messages[0].get('x') }}{{ messages[0].get('x', 'd') }}",
    "{{ ('a' ~ 'b').upper() }}{{ messages[2].content.strip().lower()[0] }}",
    # statements
    "{% if 0 %}a{% elif '' %}b{% elif [1] %}c{% else %}d{% endif %}", "{% for i in range(3) %}{{ i }}{% else %}none{% endfor %}{% for i in [] %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in range(1, 7, 2) %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }} {% endfor %}",
    "{% for m in messages if m.role != 'user' %}{{ loop.index }}{{ m.role }}{% endfor %}", "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% set x = 1 %}{% for i in range(2) %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "{% if true %}{% set y = 2 %}{% endif %}{{ y }}",
    "{% set ns = namespace(n=0, f=false) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns.f }}",
    "{% for i in range(2) %}{% for k in range(2) %}{{ i }}{{ k }}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined }}>{{ loop.nextitem.role }}|{% endfor %}",
    "{% generation %}a{% endgeneration %}b{% generation %}{% set q = 1 %}c{% endgeneration %}{{ q }}",
    "a{{ raise_exception('no') }}b", "{% if false %}{{ raise_exception('no') }}{% endif %}ok", "{% for m in nothing %}{{ m }}{% endfor %}|",
    "{% if false %}{{ messages | map(attribute='x') | list }}{% for a, b in messages[0].items() %}{% endfor %}{% endif %}ok",
]
TALKS = [
    [("user", "Q")], [("system", "S"), ("user", "Q")], [("system", " S\n"), ("user", "\n Q\t"), ("assistant", " A\n"), ("user", "R")],
    [("user", ""), ("assistant", "")], [("user", "Q"), ("assistant", "A"), ("user", "R"), ("assistant", "B")],
    [("user", "Q"), ("assistant", "<think>\nT\n</think>\n\nA"), ("user", "R")], [("user", "Q"), ("assistant", "<think>\nT\n</think>\n\nA")],
    [("user", "\u4e2d e\u0301"), ("assistant", "\n\n\u00e9 <|im_end|></s>")], [("assistant", "A"), ("user", "Q")], [("user", "Q"), ("user", "R")],
]


def jinja():
    for template in JINJA:
        try:
            yield {"template": template, "text": _compile_jinja_template(template).render(**VARS)}
        except (TemplateError, TypeError, ZeroDivisionError):
            yield {"template": template, "raised": True}


def styles():
    for name, (form, _, _, template) in TEMPLATES.items():
        if form is NONE:
            continue
        for talk in TALKS:
            for generate in (False, True):
                row = {"template": name, "form": form, "messages": [{"role": r, "content": c} for r, c in talk],
                       "generate": generate}
                try:
                    texts, turns = render_jinja_template([row["messages"]], chat_template=template, add_generation_prompt=generate,
                                                         return_assistant_tokens_mask="generation %}" in template,
                                                         bos_token="<s>", eos_token="</s>")
                    row["text"] = texts[0]
                    if "generation %}" in template:
                        row["turns"] = [[len(row["text"][:a].encode()), len(row["text"][:b].encode())] for a, b in turns[0]]
                except TemplateError:
                    row["raised"] = True
                yield row


def main():
    for name, rows in (("jinja", jinja()), ("styles", styles())):
        with open(f"{HERE}/data/{name}.jsonl", "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)
    with open(f"{HERE}/data/vars.json", "w") as f:
        json.dump(VARS, f)
    with open(f"{HERE}/data/templates.json", "w") as f:
        json.dump({n: {"form": t[0], "text": t[3]} for n, t in TEMPLATES.items()}, f, indent=0)


main()
