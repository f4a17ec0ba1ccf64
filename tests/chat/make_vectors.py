#!/usr/bin/env python3
"""Writes tests/chat/data/jinja.jsonl, styles.jsonl and published.jsonl with the Jinja environment of transformers.

jinja.jsonl: {"template", "text"}, {"template", "raised": true}, or "refused" if the template has a syntax error; the
variables are VARS.
styles.jsonl, published.jsonl: {"template", "messages", "generate", "text", "turns"}, or "raised" instead of the last
two. turns: the [from, to) bytes of {% generation %} blocks, of the template or of its copy with blocks (published.py).
"""
import json
import os
import sys

from jinja2.exceptions import TemplateError, TemplateSyntaxError
from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + "/../oracle")
from chat_templates import TEMPLATES  # noqa: E402
from published import PUBLISHED  # noqa: E402

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
    "a{#-#}  b{#+#}  \n c{#--#}  d", "{{ 'x'.center(-2 ** 63) }}{{ 'x'.ljust(-2 ** 63) }}{{ 'x'.rjust(-2 ** 63) }}{{ '-5'.zfill(-2 ** 63) }}{{ 'x' | center(-2 ** 63) }}",
    "{{ 'aba'.split('b', -2 ** 63) }}{{ 'aba'.rsplit('b', -2 ** 63) }}{{ 'a b'.split(none, -2 ** 63) }}{{ 'aba'.replace('b', 'c', -2 ** 63) }}{{ 'ab'.replace('', '-', -2 ** 63) }}",
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
    # macros and blocks that become values
    "{% macro m(a, b='B', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=4) }}{{ m() }}{{ m(1, c='x') | length }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{{ m(1) }}{% macro m(a) %}{{ a }}{% endmacro %}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{{ y }}{{ loop }}{% endmacro %}{% for y in [5] %}{{ m() }}{% set x = 7 %}{{ m() }}{% endfor %}{% set x = 2 %}{{ m() }}",
    "{% macro down(n) %}{{ n }}{% if n > 0 %}{{ down(n - 1) }}{% endif %}{% endmacro %}{{ down(3) }}",
    "{% macro m(a) %}{% set a = a + 1 %}{{ a }}{% endmacro %}{% set a = 5 %}{{ m(1) }}{{ a }}{{ m is callable }}{{ m is defined }}",
    "{% set x %}  a {{ 1 + 1 }}{% for i in range(2) %}{{ i }}{% endfor %} {% endset %}{{ x | trim }}|{{ x | length }}", "{% set x %}{% set y = 1 %}{% endset %}{{ x is string }}{{ y }}",
    "{% set a, b = [1, 'x'] %}{{ b }}{{ a }}", "{% set a, b = [1] %}", "{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in {'b': 1, 'a': [2]} | dictsort %}{{ k }}{{ v }}{% endfor %}",
    "{% for c in 'h\u00e9y' %}{{ c }},{% endfor %}{% for k in {'x': 1, 'y': 2} %}{{ k }}{% endfor %}{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}",
    "{% for i in range(5) if i % 2 == 0 %}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{{ i }}{% endfor %}", "{% set x = nothing %}{{ x is defined }}{% set y = 1 %}{% for i in [1] %}{% set y = nothing %}{{ y is defined }}{% endfor %}{{ y }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}{% set ns.l = [1] %}{% set ns.l = ns.l + [2] %}{{ ns.l | length }}{{ ns.zz is defined }}", "{% set d = dict(a=1, b='x') %}{{ d.a }}{{ d['b'] }}{{ d }}",
    "{% set messages.x = 1 %}", "{{ 5() }}", "{{ messages() }}", "{% for x in 5 %}{% endfor %}", "{% for i in range(3) %}{% for j in range(2) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }}{% endfor %}{% endfor %}",
    # printing and JSON
    "{{ [1, 'a', \"it's\", none, true, 1.5, {'k': [\u0022\u00e9\u0022]}, (1,), (1, 2), []] }}", "{{ {} }}{{ '' }}{{ [] }}{{ {'a': 'x\\ny'} }}{{ ['\\\\', '\"'] }}", "{{ 1.0 }} {{ 0.1 }} {{ 1e20 }} {{ 1.5e-7 }} {{ 100000.0 * 10 }} {{ 3 / 2 }} {{ 4 / 2 }} {{ 123456789.123 }} {{ 1e16 }} {{ 0.0001 }} {{ -0.5 }}",
    "{{ messages | tojson }}", "{{ messages[0] | tojson(indent=2) }}", "{{ {'b': 1, 'a': [1, {'x': none}], 'c': {}, 'd': []} | tojson(indent=4) }}", "{{ {'b': 1, 'a': 2.5} | tojson(sort_keys=true) }}{{ {'b': 1, 'a': 2} | tojson(separators=(',', ':')) }}",
    "{{ 'a\"b\\\\c\\n\\t<>&\u00e9\u4e2d/' | tojson }}{{ none | tojson }}{{ true | tojson }}{{ 1.0 | tojson }}{{ 'x' | tojson }}{{ '\u00e9\U0001f600' | tojson(ensure_ascii=true) }}", "{{ nothing | tojson }}", "{{ [[], [1], {}] | tojson(indent=1) }}",
    # more filters
    "{{ messages | map(attribute='role') | join(', ') }}{{ messages | map(attribute='x', default='d') | list }}{{ ['a', 'b'] | map('upper') | list }}{{ [' a '] | map('trim') | first }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list }}{{ messages | selectattr('x') | list }}{{ messages | selectattr('role', 'in', ['user', 'system']) | list | length }}{{ messages | selectattr('x', 'undefined') | list | length }}",
    "{{ [1, 2, 3, 4] | select('odd') | list }}{{ [1, 2, 3] | reject('gt', 2) | list }}{{ [0, 1, '', 'a'] | select | list }}{{ ['b', 'A', 'c', 'a'] | sort }}{{ [3, 1, 2] | sort(reverse=true) }}{{ ['b', 'B', 'a'] | unique | list }}{{ messages | sort(attribute='role') | map(attribute='role') | list }}",
    "{{ [1, 2, 3] | sum }}{{ [1, 5, 3] | max }}{{ [4, 2] | min }}{{ [] | first }}|{{ 'abc' | first }}{{ 'abc' | last }}{{ 'abc' | reverse }}{{ [1, 2] | reverse | list }}{{ 'abc' | list }}{{ '42' | int + 1 }}{{ 'x' | int }}{{ 'x' | int(7) }}{{ '1.5' | float }}{{ 3.9 | int }}{{ -3 | abs }}{{ nothing | length }}",
    "{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(2, blank=true) }}|{{ 'a' | indent }}|{{ 'hello wORLD' | capitalize }}|{{ {'b': 2, 'a': 1} | items | list }}|{{ 5 | string + 'x' }}|{{ none | string }}", "{{ {'B': 1, 'a': 3, 'C': 2} | dictsort }}{{ {'a': 3, 'b': 1} | dictsort(by='value') }}{{ {'a': 1, 'b': 2} | dictsort(reverse=true) }}",
    "{{ 5 | length }}", "{{ [1, 'a'] | sort }}", "{{ [1, 2] | join }}{{ messages | join('|', attribute='role') }}{{ 'a-b' | replace('-', '+') }}{{ 'aaa' | replace('a', 'b', 2) }}{{ 'abc' | join('.') }}",
    # more methods
    "{{ 'a b  c'.split() }}{{ ' a b '.split() | length }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a b c'.split(' ', 1)[1] }}{{ 'x\\ny\\n'.splitlines() }}{{ ''.split('x') }}{{ ''.split() }}{{ 'a b c'.split(none, 1) }}",
    "{{ 'hello'.find('l') }}{{ 'hello'.rfind('l') }}{{ 'hello'.find('z') }}{{ 'h\u00e9llo'.find('l') }}{{ 'hello'.count('l') }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}{{ 'abc'.removesuffix('x') }}{{ ', '.join(['a', 'b']) }}{{ 'aXaX'.replace('X', 'y', 1) }}",
    "{{ 'hello world'.title() }}{{ 'hELLO'.capitalize() }}{{ '12'.isdigit() }}{{ 'a1'.isalnum() }}{{ ''.isdigit() }}{{ ' '.isspace() }}{{ 'ab'.startswith(('x', 'a')) }}{{ 'ab'.endswith(('b', 'c')) }}", "{{ messages[0].keys() | list }}{{ messages[0].values() | list }}{{ messages[0].items() | list }}{{ [1, 2, 1].index(2) }}{{ messages[0].get('nope') is none }}",
    # more operators and tests
    "{{ 2 ** 10 }}{{ 2 ** -1 }}{{ 7 / 2 }}{{ 7 // 2.0 }}{{ 7.5 % 2 }}{{ 1.5 + 1 }}{{ -7 / 2 }}{{ 2 ** 3 ** 2 }}{{ +3 }}{{ 10 - 2.5 }}{{ 1 == 1.0 }}{{ 1 < 1.5 }}", "{{ 'ab' * 3 }}{{ 2 * 'x' }}{{ [1] * 2 }}{{ 'a' * 0 }}{{ (1, 2) + (3,) }}{{ [1, 2] < [1, 3] }}{{ [1] == [1.0] }}{{ {'a': 1} == {'a': 1} }}",
    "{{ 1 is divisibleby 1 }}{{ 6 is divisibleby(4) }}{{ 1.5 is float }}{{ 1 is integer }}{{ true is integer }}{{ 1.5 is number }}{{ 'a' is sameas 'a' }}{{ 1 is sameas true }}{{ 3 is gt 2 }}{{ 3 is le(2) }}{{ 'a' is ne 'b' }}{{ messages[0].x is undefined }}{{ [] is iterable }}{{ 5 is iterable }}{{ 'a' is mapping }}",
    "{{ 'x' if messages[0].content is string and messages[0]['content'] else 'y' }}{{ not (1 and 0) }}{{ 1 if 0 else 2 if 0 else 3 }}{{ ('a', 'b')[1] }}{{ 1, 2 }}", "{{ 'a' < 1 }}", "{{ [] + 1 }}", "{{ 1.5 // 0 }}", "{{ 'a' in 5 }}", "{{ 'a' in nothing }}{{ 1 in {} }}",
    "{{ [1, 2, 3, 4][1:3] }}{{ [1, 2, 3][::-1] }}{{ [1, 2, 3][-2:] }}{{ 'h\u00e9llo'[1:3] }}{{ 'h\u00e9llo'[::-1] }}{{ [][0] is defined }}{{ (1, 2, 3)[1:] }}", "{{ range(5) | list }}{{ range(5, 0, -2) | list }}{{ range(0) | list }}{{ range(3)[1] }}",
    "{%- set tools = [{'type': 'function', 'function': {'name': 'f', 'description': 'd', 'parameters': {'type': 'object', 'properties': {'x': {'type': 'number', 'default': 1.5}}, 'required': ['x']}}}] %}{% for t in tools %}{{ t.function | tojson }}\n{{ t | tojson(indent=4) }}{% for n, p in t.function.parameters.properties.items() %}{{ n }}{{ p.type }}{{ p.default }}{% endfor %}{% endfor %}",
    "{% if tools is not none and documents %}t{% elif tools is none %}none{% endif %}{{ tools }}{{ documents is defined }}",
    "{{ nothing.split('x') }}", "{{ none.x }}|{{ none | default('d', true) }}", "{{ messages[9].role }}", "{% for m in messages %}{% if loop.previtem is defined and loop.previtem.role == 'user' %}<{{ m.role }}{% endif %}{% endfor %}",
    "{{ messages[-1].role == 'assistant' and messages[-1]['content'] | trim | length > 0 }}{{ (messages | last).role }}{{ messages[:-1] | map(attribute='content') | map('trim') | join('|') }}", "{{- '' -}}  x  {{- '' -}}\n\n{%- if true -%} y {%- endif -%}",
    # functions, methods and members as values
    "{% for f in [raise_exception, range, namespace, dict, cycler, joiner, lipsum, nothing] %}{{ f is defined }}{{ f is callable }}{% endfor %}", "{% if raise_exception is defined and namespace is callable %}a{% else %}b{% endif %}",
    "{% set f = 'a-b'.split %}{{ f('-') }}{{ 'x'.upper is callable }}{{ 'x'.nope is defined }}{{ messages[0].items is callable }}{{ messages[0]['keys']() | list }}", "{{ messages.0.role }}{{ [[1, 2]].0.1 }}", "{{ 1.5.real }}{{ true.real }}{{ [1].x is defined }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}", "{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}", "{{ raise_exception() }}", "{{ cycler() }}", "{{ dict.fromkeys('ab', 1) }}{{ dict([(1, 2)], a=3) }}",
    # arguments
    "{{ 'abc'.startswith('b', 1) }}{{ 'abc'.endswith('b', 0, 2) }}{{ 'aaaa'.count('a', 1) }}{{ 'aaaa'.count('a', 1, 3) }}{{ [1, 2] | sum(start=10) }}{{ [{'n': 1}] | sum('n', 10) }}{{ '11' | int(base=2) }}{{ [1] | tojson(indent='\t') }}",
    "{{ 'a'.upper(1) }}", "{{ 'a' | upper(1) }}", "{{ 'a' | replace('a', 'b', nope=1) }}", "{{ 'a' | default('b', false, 1) }}", "{{ 'a' is string(1) }}", "{{ 1 is eq }}", "{{ raise_exception('a', 'b') }}", "{{ range() }}", "{{ 'a'.replace('b') }}", "{{ 'a'.strip(chars='b') }}", "{{ 'a' | trim(x='b') }}", "{{ namespace({}, {}) }}",
    "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'b': 1, 'a': 2}) }}{{ m(1, *[2]) }}{{ m(*'xy') }}", "{{ [3, 1] | sort(*[true]) }}", "{{ '{}{}'.format(*[1, 2]) }}", "{{ dict(**{1: 2}) }}",
    # statements
    "{% macro m(a='A') %}<{{ caller(a, 2) }}{{ a }}>{% endmacro %}{% call(x, y, z=3) m() %}{{ x }}{{ y }}{{ z }}{% endcall %}{% call m('q') %}{% endcall %}", "{% macro m(a='A') %}<{{ caller(a) }}>{% endmacro %}{% set v = 5 %}{% for i in [1, 2] %}{% call(x) m(i) %}{{ x }}{{ v }}{{ loop.index }}{% endcall %}{% endfor %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}", "{% call 5 %}{% endcall %}", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}{{ m() }}", "{% macro m(a) %}{% endmacro %}{{ m(1, k=4) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=4) }}",
    "{% filter upper | replace('A', 'x') %}a b{% endfilter %}{% filter indent(2, true) %}a\n b{% endfilter %}", "{% filter length %}a{% endfilter %}", "{% set x | trim | upper %} a {% endset %}{{ x }}{% set y %}{{ y }}b{% endset %}{{ y }}", "{% set bos_token %}{{ bos_token }}x{% endset %}{{ bos_token }}",
    "{% with a=1, b=2 %}{{ a }}{{ b }}{% endwith %}{{ a }}{% set a = 7 %}{% with a=1, b=a %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a }}{{ c }}{% with %}x{% endwith %}", "a {% raw %}{{ x }} {% if %}{% endraw %} b", "a\n  {%- raw -%}\n {{ x }}\n {%- endraw %}\nb", "  {% raw %}\nx\n  {% endraw %}\ny{% raw +%}", "{% raw %}x",
    "{% for (a, b), c in [((1, 2), 3), ('xy', 4)] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}{% for x in 1, %}{{ x }}{% endfor %}{% set (a, b) = 1, 2 %}{{ a }}{{ b }}{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}", "{% set (a, b) = [1] %}", "{% set true = 1 %}", "{% break %}", "{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in [{'v': 1, 'k': [{'v': 2, 'k': []}, {'v': 3, 'k': []}]}] recursive %}{{ x.v }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.last }}({{ loop(x.k) }}){% else %}-{% endfor %}", "{% for x in [1] %}{{ loop([2]) }}{% endfor %}", "{% for i in [1, 2] %}{% for k in [1] %}{{ loop.depth }}{% endfor %}{% endfor %}",
    "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.changed() }}{% endfor %}{% for x in [1, 2] %}{{ loop.cycle() }}{% endfor %}", "{% for x in [1, 2, 3] %}{% macro m() %}{{ x }}{{ loop.index }}{% if x < 3 %}{{ m is defined }}{% endif %}{% endmacro %}{{ m() }}{% endfor %}", "{% for x in [1] %}{{ loop }}{% endfor %}{{ namespace(a=[1]) }}{{ namespace() }}",
    "{% set ns = namespace() %}{% set ns._x = 1 %}", "{{ namespace(_x=1) }}", "{{ 1 < 2 < 3 }}{{ 1 < 2 > 3 }}{{ 1 == 1.0 == true }}{{ 2 in [1, 2] == true }}{{ 1 in [1] in [[1]] }}{{ 3 > 2 > 1 > 0 }}",
    # numbers
    "{{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1_000 }} {{ 99999999999999999999 }} {{ 2 ** 64 }} {{ -(2 ** 64) }} {{ 9223372036854775807 + 1 }} {{ -9223372036854775807 - 2 }} {{ 1.5e3 }} {{ 1_0.5 }}",
    "{{ 12345678901234567890123 * 98765432109876543210987 }} {{ 10 ** 40 // 7 }} {{ -(10 ** 40) // 7 }} {{ 10 ** 40 % 97 }} {{ -(10 ** 40) % 97 }} {{ 10 ** 40 % -97 }} {{ 10 ** 40 // (10 ** 20 + 3) }} {{ 10 ** 40 % (10 ** 20 + 3) }} {{ 10 ** 40 - 10 ** 40 + 5 }} {{ 3 ** 200 // 3 ** 199 }}",
    "{{ 10 ** 40 / 3 }} {{ 1 / 10 ** 40 }} {{ 10 ** 40 / 10 ** 20 }} {{ 2 ** 70 == 2.0 ** 70 }} {{ 2 ** 70 + 1 > 2.0 ** 70 }} {{ 9007199254740993 == 9007199254740992.0 }} {{ 2 ** 64 > 1.5 }} {{ 9007199254740993 / 3 }} {{ 0 / -5 }} {{ (-1) ** (2 ** 70) }} {{ 2 ** 70 | float }} {{ 1e30 | int }} {{ [2 ** 65, 1] | max }}",
    "{{ 10 ** 400 / 3 }}", "{{ 10 ** 400 * 1.5 }}", "{{ 0 ** -1 }}", "{{ 0.0 ** -1 }}", "{{ 012 }}", "{{ 1__0 }}", "{{ -0.0 }} {{ +true }} {{ -true }} {{ 'x' | float }} {{ '1_0' | int }} {{ '1__0' | int }} {{ ' 42 ' | int }} {{ '\u0664\u0662' | int }} {{ '0x1F' | int(base=16) }} {{ 'zz' | int(base=36) }} {{ '1e3' | int }} {{ 'inf' | int(5) }} {{ none | int }}", "{{ nothing | int }}",
    "{{ 7.5 // -2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 1e20 // 3 }} {{ 0.3 % 0.1 }} {{ -0.0 // 1 }} {{ 2.5 | round }} {{ 2.675 | round(2) }} {{ 1234.5 | round(-2) }} {{ 25 | round(-1) }} {{ 15 | round(-1) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.19 | round(1, 'floor') }} {{ 7 | round(1, 'ceil') }} {{ true | round }}", "{{ 1 | round(1, 'x') }}",
    # strings
    r"{{ 'a\qb\101\x41\u00e9\U0001f600\
c' }}", "{{ '\\xzz' }}", "{{ '\u00c9MILE \u00df\u0149 \u039f\u03a3 \u01c6 \ufb01' | lower }}|{{ '\u00e9mile \u00df\u0149 \u03bf\u03c2 \u01c6 \ufb01 \u1fb7' | upper }}|{{ '\u00e9mile o\u2019neil \u01c6 \u00dfx \ufb01y' | title }}|{{ '\u00e9mile \u00c9'.title() }}|{{ '\u01c6A\u00c9' | capitalize }}|{{ 'Stra\u00dfe'.casefold() }}|{{ 'aB\u00e9'.swapcase() }}",
    "{{ 'a\u2028b\x0bc\x0cd\x1ce\x85f\r\ng'.splitlines() }}{{ 'a\nb\r\n'.splitlines(true) }}{{ 'a\u2028b' | indent(1, true) }}", "{{ ' a b c '.split(none, 1) }}{{ ' a b c '.rsplit(none, 1) }}{{ ' a b c '.split(maxsplit=0) }}{{ 'a,b,c'.rsplit(',', maxsplit=1) }}{{ 'a b'.rsplit() }}", "{{ '\u0662'.isdigit() }}{{ '\u00b2'.isdecimal() }}{{ '\u00e9'.isalpha() }}{{ 'Ab Cd'.istitle() }}{{ 'ab1'.islower() }}{{ ''.isascii() }}{{ '\u00e9' is lower }}{{ 'A' is upper }}",
    "{{ 'abc'.partition('b') }}{{ 'abcb'.rpartition('b') }}{{ 'abc'.rpartition('x') }}{{ '-7'.zfill(5) }}{{ 'a'.center(4, '*') }}{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4, '.') }}{{ 'a\tb\n\tc'.expandtabs(4) }}{{ 'aXb'.index('X') }}{{ 'abab'.rindex('b') }}{{ 'abc'.replace('', '-') }}{{ 'abc'.replace('', '-', 2) }}{{ 'abc'.find('', 9) }}{{ 'h\u00e9h'.find('h', 1) }}", "{{ 'a'.index('b') }}", "{{ 'a'.split('') }}", "{{ 'a'.partition('') }}", "{{ 'a'.center(3, 'xx') }}", "{{ 'a'.join([1]) }}",
    "{{ '%s %d %5.1f|%-5s|%05d|%x|%o|%e|%g|%c|%%|%r|%+d' % ('a', 3.9, 2.25, 'b', -42, 255, 8, 12345.678, 0.0001, 'z', 'q', 5) }}{{ '%(a)s-%(b)d' % {'a': 1, 'b': 2} }}{{ '%s' % 5 }}{{ '%s' | format('x') }}{{ '%(k)s' | format(k=1) }}{{ '%.2s' % 'abc' }}{{ 'a' % [] }}{{ '%d' % (2 ** 70) }}", "{{ '%s' % () }}", "{{ '%s' % (1, 2) }}", "{{ '%d' % 'a' }}", "{{ '%y' % 1 }}", "{{ '%x' % 1.5 }}",
    "{{ '{} {}'.format(1, 'a') }}{{ '{1}{0}'.format(1, 2) }}{{ '{a}{b[x]}{c.role}'.format(a=1, b={'x': 2}, c=messages[0]) }}{{ '{{}}'.format() }}{{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd') }}{{ '{:05d}|{:+,}|{:x}|{:#b}|{:.2f}|{:e}|{:%}|{:,.1f}|{:g}|{:.3}'.format(42, 1234567, 255, 5, 2.675, 12345.678, 0.25, 1234567.89, 1e10, 3.14159) }}{{ '{!r:>6}'.format('a') }}{{ '{:{}}'.format('a', 4) }}|{{ '{:d}'.format(2 ** 70) }}{{ '{x}'.format_map({'x': 1}) }}{{ '{:012,}'.format(1234) }}{{ '{:>6}'.format(true) }}{{ '{:.3}'.format(123.0) }}", "{{ '{}'.format() }}", "{{ '{0}{}'.format(1) }}", "{{ '{:d}'.format('a') }}", "{{ '{:x}'.format([]) }}", "{{ '{'.format(1) }}", "{{ '{a.b.c}'.format(a=1) }}",
    "{{ ['\u00a0', '\u3000', '\x07', '\u200b', '\U000e0001', '\u4e2d'] }}{{ {'a\u00a0': 1} }}{{ -0.0 }}{{ [nothing] }}{{ (1,) }}",
    # objects and lists
    "{{ {1: 'a', 1.0: 'b', true: 'c', none: 'd', (1, 2): 'e'} }}{{ {1: 'x'}[1.0] }}{{ {1: 'x'}.get(true) }}{{ {1: 'x', none: 2, 1.5: 3} | tojson }}{{ 1 in {1: 2} }}{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}{{ {2: 1, 1: 2} | tojson(sort_keys=true) }}", "{{ {[]: 1} }}", "{{ {(1,): 1} | tojson }}", "{{ {1: 1, 'a': 2} | tojson(sort_keys=true) }}", "{{ [1] in {} }}",
    "{{ messages[0].items() }}{{ messages[0].keys() }}{{ {'a': 1}.values() }}{{ range(3) }}{{ range(1, 7, 2) }}{{ messages[0].keys()[0] is defined }}{{ range(3) == [0, 1, 2] }}{{ range(3) is sequence }}{{ messages[0].items() is sequence }}", "{{ range(3) + [1] }}", "{{ range(2) | tojson }}", "{{ [1] | map('string') | length }}",
    "{% if messages | selectattr('nope') %}a{% else %}b{% endif %}{% set g = [1, 2] | map('string') %}{{ g | first }}{{ g | list }}{{ g | list }}{{ none | selectattr('x') | list }}{{ none | map('upper') | list }}{{ (messages | map(attribute='role'))[0] is defined }}", "{{ 5 | map('upper') | list }}",
    "{{ [1, 2, 3, 4, 5] | batch(2, 0) | list }}{{ [1, 2, 3, 4, 5] | slice(3, 'x') | list }}{% for g in messages | groupby('role') %}{{ g.grouper }}{{ g.list | length }}{{ g[0] }};{% endfor %}{% for k, v in [{'a': 'X'}, {'a': 'x'}, {}] | groupby('a', default='b') %}{{ k }}{{ v }}{% endfor %}{{ ['b', 'A'] | max }}{{ [{'n': 2}, {'n': 1}] | min(attribute='n') }}{{ [{'n': 2, 'm': 1}, {'n': 1, 'm': 3}, {'n': 1, 'm': 2}] | sort(attribute='n,m') }}{{ [1, 1.0, true, 2] | unique | list }}",
    "{{ 'a b-c' | wordcount }}{{ 'hello big world' | truncate(9) }}|{{ 'hello big world' | truncate(9, true) }}|{{ 'hello big' | truncate(9, true, '') }}|{{ 'a' | center(5) }}|{{ 'x' | attr('upper') is callable }}{{ messages[0] | attr('role') is defined }}{{ 1000000 | filesizeformat }}{{ 1024 | filesizeformat(true) }}{{ 'a b/c?&\u00e9' | urlencode }}{{ {'a b': '1&2'} | urlencode }}{{ {'a': '<', 'b': none} | xmlattr }}", "{{ 'abc' | truncate(2) }}", "{{ 5 | indent }}",
    "{{ [[1, 2]] | map(attribute='1') | list }}{{ 2345 }}{{ [('a' | safe)] * 2 }}",
    # safe HTML
    "{{ 'a<' | safe + '<b>' }}{{ '<' ~ ('a' | safe) }}{{ '<' + ('a' | safe) }}{{ '<b>' | e }}{{ '<b>' | safe | e }}{{ '<b>' | safe | forceescape }}{{ 'a' | safe is escaped }}{{ [('a' | safe)] }}{{ ('<%s>' | safe) % '&' }}{{ ('<{}>' | safe).format('&') }}{{ ('-' | safe).join(['<', '>']) }}{{ ['<', 'a' | safe] | join('&') }}{{ ('a' | safe).replace('a', '<') }}{{ ('a' | safe) | replace('a', '<') }}{{ ('a b' | safe).split() }}{{ ('ab' | safe)[0] + '<' }}{{ ('ab' | safe) | upper + '<' }}{{ (none | safe) + '<' }}{{ [1] | e }}",
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
        except (TemplateSyntaxError, SyntaxError):
            yield {"template": template, "refused": True}
        except Exception:
            yield {"template": template, "raised": True}


THOUGHTS = [
    [("user", "Q"), ("assistant", "<think>\nT\n</think>\n\nA"), ("user", "R"), ("assistant", "<think>U</think>B")],
    [("user", "Q"), ("assistant", "A", "T"), ("assistant", "B", "\nU\n"), ("user", "R"), ("assistant", "C", "V")],
    [("system", "S"), ("user", "Q"), ("assistant", "A", "T"), ("user", "R"), ("assistant", "B")],
    [("user", "Q"), ("assistant", "Q"), ("user", "Q"), ("assistant", "Q"), ("user", "Q"), ("assistant", "Q")],
]


def rendered(name, template, marked, talk, generate):
    row = {"template": name, "messages": [dict(zip(("role", "content", "reasoning_content"), t)) for t in talk],
           "generate": generate}
    try:
        texts, _ = render_jinja_template([row["messages"]], chat_template=template, add_generation_prompt=generate,
                                         return_assistant_tokens_mask=False, bos_token="<s>", eos_token="</s>")
        row["text"] = texts[0]
        if marked:
            marks, turns = render_jinja_template([row["messages"]], chat_template=marked, add_generation_prompt=generate,
                                                 return_assistant_tokens_mask=True, bos_token="<s>", eos_token="</s>")
            if marks != texts:
                sys.exit(f"{name}: the copy with blocks writes {marks[0]!r}, not {texts[0]!r}")
            row["turns"] = [[len(row["text"][:a].encode()), len(row["text"][:b].encode())] for a, b in turns[0]]
    except TemplateError:
        row["raised"] = True
    return row


def styles():
    for name, (_, _, template) in TEMPLATES.items():
        marked = template if "generation %}" in template else None
        for talk in TALKS:
            for generate in (False, True):
                yield rendered(name, template, marked, talk, generate)


def published():
    for name, (template, marks) in PUBLISHED.items():
        marked = template if marks else None
        for part, with_block in marks or []:
            if part not in template:
                sys.exit(f"{name} has no {part!r}")
            marked = marked.replace(part, with_block)
        for talk in TALKS + THOUGHTS:
            if len(talk[1:]) and max(map(len, talk)) == 3 and "reasoning_content" not in template:
                continue  # refused here by name
            for generate in (False, True):
                yield rendered(name, template, marked, talk, generate)


def main():
    for name, rows in (("jinja", jinja()), ("styles", styles()), ("published", published())):
        with open(f"{HERE}/data/{name}.jsonl", "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)
    with open(f"{HERE}/data/vars.json", "w") as f:
        json.dump(VARS, f)
    with open(f"{HERE}/data/templates.json", "w") as f:
        json.dump({n: t[2] for n, t in TEMPLATES.items()}, f, indent=0)
    with open(f"{HERE}/data/published.json", "w") as f:
        json.dump({n: t[0] for n, t in PUBLISHED.items()}, f, indent=0)


main()
