#!/usr/bin/env python3
"""Compares the ids of conversations that are made turn by turn, as episodes make them (turns.c), with those of
transformers' apply_chat_template of the whole conversation.

Usage: turns.py TURNS WORK N [STATE]    N: turns of the assistant, over all templates

A conversation is compared if the template is append-only for it: its text up to a turn of the assistant stays
the same when messages follow. With a STATE file an interrupted comparison continues, by the same command. Exit status
0: no compared conversation has a different id; 1: some do.
"""
import json
import os
import random
import subprocess
import sys

import transformers as hf

import texts
from chat import ADD, NAMED, PUBLISHED, WEATHER, directory
from chat_templates import IM, TEMPLATES, TRL, TURNS

AT_ONCE = 500  # conversations
PUBLISHED_FORMS = {
    "llama3.1": ("llama3", []),
    "gemma2": ("llama2-metaspace", TURNS),
    "phi4": ("gpt2", ["<|im_start|>", "<|im_sep|>", "<|im_end|>"]),
    "qwen3": ("qwen2", ["<think>", "</think>"]),
}
# Templates that drop what they wrote for a turn once a tool or a user has spoken after it.
REWRITES = ("qwen3",)


class Talks:
    """Random conversations whose texts have no special token of `tok`."""

    def __init__(self, tok, seed):
        self.rng = random.Random(seed)
        special = [t for t in (*tok.all_special_tokens, *tok.get_added_vocab(), *IM, "<think>", "</think>", "<tool") if t.strip()]
        self.pool = [r for r in texts.texts(400) if len(r) < 40 and "\x00" not in r and not any(s in r for s in special)]
        self.pool += ["{\"", "\\n", "</", "|>", "<", " \n", "\n ", "[INST", "1", "a"]
        self.special = special

    def text(self):
        while True:
            out = "".join(self.rng.choice(self.pool) for _ in range(self.rng.randint(0, 4)))
            if not any(s in out for s in self.special):
                return out

    def calls(self):
        return [{"id": f"call{k:05d}", "type": "function", "function": {"name": self.rng.choice(["weather", "add"]), "arguments":
                 self.rng.choice([{}, {"a": 1}, {"place": self.text()}])}} for k in range(self.rng.choice([1, 1, 1, 2, 3]))]

    def thoughts(self):
        return "<think>\nA" + self.text().rstrip("\n") + "\n</think>\n\n"

    def reasoned(self, n, _):
        """A question, and then only thoughts and calls. Even templates that drop old thoughts keep these."""
        out = [{"role": "user", "content": self.text()}]
        for _ in range(n):
            calls = self.calls()
            out.append({"role": "assistant", "content": self.thoughts(), "tool_calls": calls})
            out += [{"role": "tool", "content": self.text(), "name": c["function"]["name"], "tool_call_id": c["id"]} for c in calls]
        return out

    def talk(self, n, tools):
        out = [{"role": "system", "content": self.text()}] if self.rng.random() < .3 else []
        out.append({"role": "user", "content": self.text()})
        for _ in range(n):
            if tools and self.rng.random() < .6:
                calls = self.calls()
                out.append({"role": "assistant", "content": "", "tool_calls": calls})
                out += [{"role": "tool", "content": self.text(), "name": c["function"]["name"], "tool_call_id": c["id"]} for c in calls]
            else:
                # The "A" keeps the text from merging with the template's text into one token. Turn by turn, these would be two.
                out += [{"role": "assistant", "content": "A" + self.text()}, {"role": "user", "content": self.text()}]
        return out


def whole_ids(tok, row):
    """The ids of the whole conversation; None if the template refuses it or rewrites the past."""
    say = lambda n, asks: tok.apply_chat_template(row["messages"][:n], tools=row.get("tools"), tokenize=False, add_generation_prompt=asks)
    try:
        text = say(len(row["messages"]), True)
        turns = [k for k, m in enumerate(row["messages"]) if m["role"] == "assistant"]
        if not all(text.startswith(say(k, True)) and text.startswith(say(k + 1, False)) for k in turns):
            return None
    except Exception:
        return None
    return tok(text, add_special_tokens=False)["input_ids"]


def count_turns(row):
    return sum(m["role"] == "assistant" for m in row["messages"])


class Kept:
    """The counts of each template, in a file."""

    def __init__(self, path):
        self.path, self.of = path, {}
        if path and os.path.exists(path):
            with open(path) as f:
                self.of = json.load(f)

    def put(self, name, counts):
        self.of[name] = counts
        if not self.path:
            return
        with open(self.path + ".new", "w") as f:
            json.dump(self.of, f)
        os.replace(self.path + ".new", self.path)


def check(program, work, name, spec, n, kept):
    """Returns (turns compared, conversations that differ, turns that were not compared)."""
    folder = directory(work, name, *spec, in_config=False)
    tok = hf.AutoTokenizer.from_pretrained(folder)
    talks = Talks(tok, name)
    part, done, wrong, left_out = kept.of.get(name, (0, 0, 0, 0))
    with_tools = "tools" in spec[2]
    while done < n and left_out < 4 * n:
        talks.rng.seed(f"{name} {part}")
        rows = []
        for i in range(AT_ONCE):
            tools = [None, None, [ADD], [WEATHER, ADD]][i % 4] if with_tools else None
            make = talks.reasoned if tools and any(r in name for r in REWRITES) else talks.talk
            row = {"messages": make(talks.rng.randint(1, 6), tools)}
            rows.append({**row, "tools": tools} if tools else row)
        lines = "".join(json.dumps(r) + "\n" for r in rows)
        out = subprocess.run([program, folder], input=lines, capture_output=True, text=True)
        ours = out.stdout.splitlines()
        assert len(ours) == len(rows), out.stderr
        for row, mine in zip(rows, ours):
            want = None if mine.startswith("error: ") else whole_ids(tok, row)
            if want is None:
                left_out += count_turns(row)
                continue
            done += count_turns(row)
            if list(map(int, mine.split())) != want:
                wrong += 1
                if wrong <= 2:
                    print(f"{name}: {row}\n  here  {mine}\n  there {' '.join(map(str, want))}")
        part += 1
        kept.put(name, (part, done, wrong, left_out))
    print(f"{name}: {wrong} conversations differ; {done} turns compared, {left_out} not", flush=True)
    return done, wrong, left_out


def all_templates(program, work):
    for name in NAMED:
        if name == "plain":  # without marks, turns run into each other
            continue
        form, special, template = TEMPLATES[name]
        folder = directory(work, f"for-{name}", form, special, template, in_config=False)
        conversation = os.path.join(os.path.dirname(program), "oracle_conversation")
        out = subprocess.run([conversation, folder, name, "--jinja"], capture_output=True, text=True, check=True)
        yield name, (form, special, out.stdout)
    for name, spec in PUBLISHED_FORMS.items():
        yield f"published-{name}", (*spec, PUBLISHED[name][0])
    try:
        import importlib.util
        trl = os.path.dirname(importlib.util.find_spec("trl").origin) + "/chat_templates"
    except (ImportError, AttributeError):
        trl = ""
    for name, spec in TRL.items():
        if os.path.exists(f"{trl}/{name}.jinja") and name != "llama3_2":  # which writes today's date
            with open(f"{trl}/{name}.jinja") as f:
                yield f"trl-{name}", (*spec, f.read())


def main():
    program, work, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kept = Kept(sys.argv[4] if len(sys.argv) > 4 else "")
    templates, total, bad = list(all_templates(program, work)), 0, 0
    for name, spec in templates:
        done, wrong, left_out = check(program, work, name, spec, n // len(templates), kept)
        total += done
        bad += wrong or (done < left_out and not any(r in name for r in REWRITES)) or done == 0
    print(f"{total} turns of {len(templates)} templates compared")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
