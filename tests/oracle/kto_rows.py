#!/usr/bin/env python3
"""Compares rows of one completion that our reader (completions.c) and TRL's KTOTrainer prepare: the ids of prompt and
completion, the label, and the other row's completion for the reference point.

Usage: kto_rows.py COMPLETIONS WORK

TRL's _prepare_dataset runs unchanged. It differs from our reader in three ways:
- it ends texts with the end-of-text token, and trains on the template's text after an assistant's turn (a line break);
- it tokenizes prompt and completion together, so a row loses the end of its prompt if tokens merge across the boundary;
- it pairs a row that is alone in its batch with itself.
"""
import json
import random
import subprocess
import sys
from types import SimpleNamespace

import transformers as hf
from datasets import Dataset
from trl import KTOTrainer

import forms
import texts
from chat_templates import TEMPLATES

BATCH = 4


def directory(work, name, form, special=(), template=None):
    folder = f"{work}/{name}"
    tok = forms.make(form, list(texts.prose(400)), 1200)
    tok.add_special_tokens(list(special))
    forms.save(tok, form, folder)
    if template:
        with open(f"{folder}/chat_template.jinja", "w", newline="") as f:
            f.write(template)
    return folder


def theirs(tok, rows):
    me = SimpleNamespace(_tokenizer=tok, calculate_KL=True, desirable_weight=1.0, undesirable_weight=1.0)
    args = SimpleNamespace(dataset_num_proc=None, max_length=None, per_device_train_batch_size=BATCH)
    return list(KTOTrainer._prepare_dataset(me, Dataset.from_list(rows), tok, args, "train"))


def turn(tok, ids):
    """A turn up to the token that ends it."""
    while ids and not tok.decode(ids[-1:]).strip():
        ids = ids[:-1]
    return ids


def check(program, work, name, folder, rows, chat):
    tok = hf.AutoTokenizer.from_pretrained(folder)
    path = f"{folder}/rows.jsonl"
    with open(path, "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
    out = subprocess.run([program, folder, path, str(BATCH)], capture_output=True, text=True)
    ours = [json.loads(line) for line in out.stdout.splitlines()]
    if out.returncode or len(ours) != 2 * len(rows):
        print(f"{name}: {out.stderr.strip()}; {len(ours)} rows of {2 * len(rows)}")
        return False
    # our rows lack the end token that TRL appends to texts
    end = (lambda ids: turn(tok, ids)) if chat else (lambda ids: ids[:-1])
    wrong = merged = 0
    for i, there in enumerate(theirs(tok, rows)):
        prompt = tok(rows[i]["prompt"])["input_ids"] if not chat else there["prompt_ids"]
        # the mismatched completion comes from another row of the batch
        before = i - 1 if i % BATCH else min(i + BATCH, len(rows)) - 1
        texts_of = (rows[i], rows[before])
        joined = not chat and any(
            len(tok(r["prompt"])["input_ids"]) + len(tok(r["completion"])["input_ids"])
            != len(tok(r["prompt"] + r["completion"])["input_ids"]) for r in texts_of)
        merged += joined
        if joined:
            continue
        own, other = ours[2 * i], ours[2 * i + 1]
        want = [(prompt + end(there["completion_ids"]), int(there["label"])),
                (prompt + end(there["KL_completion_ids"]), -1)]
        same = there["prompt_ids"] == prompt and all(
            (m["ids"], m["label"]) == w and m["prompt"] == len(prompt) for m, w in zip((own, other), want))
        if not same and wrong < 2:
            print(f"{name}: {rows[i]}\n  here  {own} {other}\n  there {want}")
        wrong += not same
    print(f"{name}: {wrong} of {len(rows)} differ, {merged} merge over the boundary", flush=True)
    return not wrong and merged < len(rows) // 2


def main():
    program, work = sys.argv[1:3]
    rng = random.Random(3)
    said = [t for t in texts.texts(40) if t.strip() and "\x00" not in t and not any(s in t for s in texts.SPECIAL)]
    plain = [{"prompt": p.rstrip(), "completion": " " + rng.choice(said).strip(), "label": rng.random() < 0.6}
             for p in said if p.rstrip()]
    plain = rng.sample(plain, 200)
    chat = [{"prompt": [{"role": "user", "content": rng.choice(said)}],
             "completion": [{"role": "assistant", "content": rng.choice(said)}], "label": rng.random() < 0.6}
            for _ in range(60)]
    good = [check(program, work, form, directory(work, form, form), plain, False) for form in ("gpt2", "qwen2")]
    for name in ("chatml", "llama3"):
        form, special, template = TEMPLATES[name]
        good.append(check(program, work, name, directory(work, name, form, special, template), chat, True))
    sys.exit(not all(good))


main()
