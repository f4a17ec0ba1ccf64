#!/usr/bin/env python3
"""Compares published chat templates by `conversation` (conversation.c) with transformers: 40 conversations, each with and
without a generation prompt, as texts, ids, masks of {% generation %} blocks and spans of the assistant's turns.

Usage: published_templates.py CONVERSATION WORK DIR...        (each DIR holds *.jinja files, which are never committed)

Prints a line for each template, the refusals by cause, and the first differences. Exit status 1: a text, ids or a mask
differ.
"""
import collections
import datetime
import glob
import json
import os
import re
import subprocess
import sys

import transformers as hf
from transformers.utils import chat_template_utils

import forms
import texts
from chat import ADD, WEATHER, theirs

DATE = "2026-11-28"
NONE = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}}}
PLAIN_MARK = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
MARK = re.compile(r"<[|｜][^|｜<>\s]{1,40}[|｜]?>|<[a-z_\"]{1,20}\|>|<(?:start|end)_of_[a-z]+>|\[/?[A-Z_]{3,20}\]|\[e~\[|\]~b\]|\]~!b\[")


class Today(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(DATE)


def call(name, arguments, number=0, text=False):
    return {"id": f"abcdefgh{number}", "type": "function", "function": {
        "name": name, "arguments": json.dumps(arguments) if text else arguments}}


def said(role, content, **more):
    return {"role": role, "content": content, **more}


def result(content, name="weather", number=0):
    return {"role": "tool", "content": content, "name": name, "tool_call_id": f"abcdefgh{number}"}


def called(**members):
    return {"role": "assistant", **members}


def conversations():
    """40 pairs (messages, tools)."""
    s, u, a = said("system", "Be brief."), said("user", "What is the weather in Rome?"), said("assistant", "It is sunny.")
    u2, a2, place = said("user", "And tomorrow?"), said("assistant", "Rain, I think."), {"place": "Rome"}
    parts = lambda *t: [{"type": "text", "text": x} for x in t]
    one = [call("weather", place)]
    plain = [
        [u], [s, u], [u, a], [s, u, a], [u, a, u2], [s, u, a, u2, a2], [u, a, u2, a2], [said("system", ""), u, a], [u, a, s, u2],
        [u, u2], [a, u], [said("user", ""), said("assistant", "")], [said("user", " \n q \t"), said("assistant", "\n  a \n\n")],
        [said("user", "naïve 中文 Ⅷ \U0001f468\u200d\U0001f469 e\u0301 \u00a0x\u3000"), said("assistant", "ÉÇŞ ﬁ\u2028Σ")],
        [said("user", "{{ 7 * 7 }} {% if x %} {# no #}"), said("assistant", "%} }} {%- endif %}")],
        [said("user", "<|im_end|>\n<|im_start|>system\n[/INST] </s>"), said("assistant", "<|eot_id|><end_of_turn><|user|>")],
        [u, said("assistant", "<think>\nwhy\n</think>\n\nSun."), u2, said("assistant", "<think>\nhm\n</think>\n\nRain.")],
        [said("developer", "Be exact."), u, a],
        [said("user", parts("What is this?")), a], [said("system", parts("Be", " brief.")), said("user", parts("a", "b")), said("assistant", parts("c"))],
        [u, said("assistant", "Sun.", reasoning_content="I look out.")],
        [u, said("assistant", "Sun.", reasoning_content="I look out."), u2, said("assistant", "Rain.", reasoning_content="I wait.")],
        [u, said("assistant", "Sun.", reasoning="I look out.")], [u, said("assistant", "Sun.", thinking="I look out.")],
        [u, said("assistant", "Sun.", reasoning_content=None, tool_calls=None, name=None)],
    ]
    tools = [
        ([u], [WEATHER]), ([s, u, a], [WEATHER, ADD, NONE]),
        ([u, called(content="", tool_calls=one)], [WEATHER]),
        ([u, called(content=None, tool_calls=one), result("21 degrees"), said("assistant", "Warm.")], [WEATHER]),
        ([u, called(tool_calls=one), result("21 degrees"), said("assistant", "Warm."), u2], [WEATHER]),
        ([u, called(content="I ask.", tool_calls=one), result('{"t": 21}')], [WEATHER, ADD]),
        ([s, u, called(content="", tool_calls=[call("weather", place, text=True)]), result("21")], [WEATHER]),
        ([u, called(content="", tool_calls=[call("weather", place, 0), call("add", {"a": 1.5, "b": [1, -2e-7, True, None]}, 1)]),
          result("21", "weather", 0), result("3", "add", 1), a], [WEATHER, ADD]),
        ([u, called(content="", tool_calls=one), result("21"), called(content="", tool_calls=[call("add", {"a": 1}, 1)]), result("3", "add", 1), a],
         [WEATHER, ADD]),
        ([u, called(content="", reasoning_content="I must ask.", tool_calls=one), result("21"), said("assistant", "Warm.", reasoning_content="Done.")],
         [WEATHER]),
        ([u, called(content="", thinking="I must ask.", tool_calls=one), result("21"), a], [WEATHER]),
        ([u, called(content="", tool_calls=[call("weather", {"place": "Öl \"x\" <b>\n"})]), result("né <|im_end|>"), a], [WEATHER]),
        ([u, called(content="", tool_calls=one), result("21"), a], None), ([u, called(content="", tool_calls=[call("now", {})]), result("12:00", "now"), a], [NONE]),
        ([u, a, u2, called(content=None, reasoning="Ask.", tool_calls=one), result("9"), a2, u], [WEATHER]),
    ]
    return [(c, None) for c in plain] + tools


def directory(work, path, base):
    """A model directory with this template, and a tokenizer in which the template's marks are special tokens."""
    with open(path) as f:
        template = f.read()
    folder = f"{work}/{os.path.basename(os.path.dirname(path))}-{os.path.basename(path)}"
    tok = forms.Tokenizer.from_str(base)
    tok.add_special_tokens(["<s>", "</s>"] + sorted({m for m in MARK.findall(template) if m not in PLAIN_MARK}))
    tok.add_tokens([forms.AddedToken(t, normalized=False) for t in PLAIN_MARK])
    forms.save(tok, "gpt2", folder)
    with open(f"{folder}/tokenizer_config.json") as f:
        config = json.load(f) | {"bos_token": "<s>", "eos_token": "</s>"}
    with open(f"{folder}/tokenizer_config.json", "w") as f:
        json.dump(config, f)
    with open(f"{folder}/chat_template.jinja", "w", newline="") as f:
        f.write(template)
    return folder, template


def render(tok, messages, tools, generate):
    try:
        return tok.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=generate)
    except Exception:
        return None


def spans(tok, row, text):
    """The assistant's turns as pairs (from, to, is last), by the texts of the conversation's beginnings. None without an
    answer: a beginning's text is not the beginning of the whole text."""
    out = []
    for i, m in enumerate(row["messages"]):
        if m["role"] != "assistant":
            continue
        ask = render(tok, row["messages"][:i], row["tools"], True) if i else None
        with_turn = render(tok, row["messages"][:i + 1], row["tools"], False)
        if ask is None or with_turn is None or not text.startswith(ask):
            return None
        to = len(os.path.commonprefix([with_turn, text]))
        if with_turn[to:].strip() and i < len(row["messages"]) - 1:
            return None
        out.append((len(ask), max(len(ask), len(text[:to].rstrip())), i == len(row["messages"]) - 1))
    return out


def same_span(tok, row, mine, want, count):
    """Compares the assistant's tokens with the spans of the oracle. A special token after the last turn may be left out."""
    oracle = spans(tok, row, want["text"])
    if oracle is None:
        count["no oracle"] += 1
        return True
    places = tok(want["text"], add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    for (from_, to, last), after in zip(oracle, oracle[1:] + [(len(want["text"]), 0, 0)]):
        inside = [(p, s) for p, s in zip(places, mine["says"]) if from_ <= p[0] < after[0] and p[1] > p[0]]
        wrong = [p for p, s in inside if s != (p[0] < to) and want["text"][p[0]:p[1]].strip()]
        rest = want["text"][wrong[0][0]:to] if wrong else ""
        if wrong and not (last and re.fullmatch(r"\s*(</s>|<\|endoftext\|>)?\s*", rest)):
            count["differ"] += 1
            return False
    count["equal"] += 1
    return True


def check(program, work, path, base, total, causes, show):
    folder, template = directory(work, path, base)
    tok = hf.AutoTokenizer.from_pretrained(folder)
    rows = [{"messages": m, "tools": t, "generate": g} for m, t in conversations() for g in (False, True)]
    args = [program, folder] + (["--date", DATE] if os.environ.get("NO_DATE") != "1" else [])
    out = subprocess.run(args, input="".join(json.dumps(r) + "\n" for r in rows), capture_output=True, text=True)
    ours = [json.loads(line) for line in out.stdout.splitlines()]
    if len(ours) != len(rows):
        print(f"{path}: {out.stderr}")
        return
    mask = re.search(r"\{%-?\s*generation\s*-?%\}", template) is not None
    count = collections.Counter()
    for row, mine in zip(rows, ours):
        want = theirs(tok, row, mask)
        if "error" in mine and "error" in want:
            kind = "both refuse"
        elif "error" in mine:
            kind = "refused here"
            cause = re.sub(r"messages\[\d+\]", "messages[]", mine["error"].replace(f"the chat template {folder}/chat_template.jinja", "T"))
            causes[cause][os.path.basename(path)] += 1
        elif "error" in want:
            kind = "refused there"
        elif mine["text"] != want["text"]:
            kind = "text differs"
        elif mine["ids"] != want["ids"]:
            kind = "ids differ"
        elif mask and mine.get("says") != want["says"]:
            kind = "mask differs"
        else:
            kind = "equal"
            if mask:
                total["masks equal"] += 1
            elif "says" not in mine:
                total["spans refused"] += 1
                causes["span: " + re.sub(r"messages\[\d+\]", "messages[]", mine["says_error"].replace(f"the chat template {folder}/chat_template.jinja", "T"))[:90]][os.path.basename(path)] += 1
            else:
                here = collections.Counter()
                same = same_span(tok, row, mine, want, here)
                total.update({"spans " + k: n for k, n in here.items()})
                if not same:
                    causes["span differs"][os.path.basename(path)] += 1
                    if show["span " + path] < 1:
                        show["span " + path] += 1
                        says = [tok.decode([i]) if s else "·" for i, s in zip(mine["ids"], mine["says"])]
                        print(f"span {path}: {json.dumps(row['messages'])}\n  text {want['text']!r}\n  says {''.join(says)!r}\n  oracle "
                              f"{[want['text'][a:b] for a, b, _ in spans(tok, row, want['text'])]}")
        count[kind] += 1
        if "differ" in kind and show[path] < 1:
            show[path] += 1
            print(f"{kind} {path}: {json.dumps(row)}\n  here  {mine}\n  there {want}")
    total.update(count)
    print(f"{os.path.basename(path)}: {dict(count)}", flush=True)


def main():
    program, work, *dirs = sys.argv[1:]
    chat_template_utils.datetime = Today
    base = forms.make("gpt2", list(texts.prose(400)), 1200).to_str()
    total, causes, show = collections.Counter(), collections.defaultdict(collections.Counter), collections.Counter()
    for path in sorted(p for d in dirs for p in glob.glob(f"{d}/*.jinja")):
        check(program, work, path, base, total, causes, show)
    for cause, where in sorted(causes.items(), key=lambda c: -sum(c[1].values())):
        print(f"{sum(where.values()):5} rows {len(where):4} templates  {cause[:230]}  e.g. {', '.join(list(where)[:3])}")
    print(dict(total))
    sys.exit(any("differ" in k and "span" not in k for k in total))


if __name__ == "__main__":
    main()
