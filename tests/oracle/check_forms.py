#!/usr/bin/env python3
"""Compares ids and texts by `encode` (encode.c) with those of the package tokenizers, for tokenizer.json in the
forms of forms.py, with vocabularies trained here.

Usage: check_forms.py ENCODE WORK [DATA]

DATA: a folder with imdb/*.jsonl.gz. If it is given, the vocabularies are trained on some of its reviews, and all reviews
are compared. Environment: RLHF_TEXTS is the number of random texts (default 200), RLHF_REVIEWS the number of reviews
(default 75000).

Exit status 0: all agree; 1: some do not, with the first texts that differ.
"""
import glob
import gzip
import itertools
import json
import os
import subprocess
import sys

from tokenizers import AddedToken

import forms
import texts

# Typical added tokens, in addition to those of the form. All vocabularies have the special ones.
ADDED = [AddedToken("<tool>", normalized=True), AddedToken("river bank", normalized=True),
         AddedToken("<mask>", lstrip=True, special=True, normalized=False),
         AddedToken("<cut>", rstrip=True, normalized=False),
         AddedToken("word", single_word=True, normalized=False),
         AddedToken("\u4e2d\u6587", normalized=False), AddedToken("   ", normalized=False)]
INSIDE = ["a <mask> b", " \u3000<mask><cut>  \n x", "word words sword word-word \u00e9word", "   x    y",
          "river bank <tool>river bank", "\u4e2d\u6587\u4e2d", "<tool", "<|im_start|>user\nHi<|im_end|>\n",
          "<s>a</s> <s> b", "<unk><s></s>", "<|begin_of_text|><|reserved_special_token_7|> x",
          "<tool_call>{}</tool_call>", "<0x41><0xE4>", "\u2581a \u2581", " lead", "trail ", "\n lead",
          "unmerged unmerged", "can't CAN'T We'Ll I'M he'S 'tis"]


def reviews(data):
    for path in sorted(glob.glob(f"{data}/imdb/*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            for line in f:
                yield json.loads(line)["text"]


def run(encode, args, values):
    lines = "".join(json.dumps(v) + "\n" for v in values)
    out = subprocess.run([encode, *args], input=lines, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{args[-1]}: {out.stderr}")
    return [json.loads(line) for line in out.stdout.splitlines()]


def compare(what, rows, got, want):
    wrong = [(r, g, w) for r, g, w in zip(rows, got, want) if g != w]
    good = len(got) == len(want) == len(rows) and not wrong
    print(f"{what}: {len(wrong)} of {len(rows)} differ", flush=True)
    for row, g, w in wrong[:3]:
        at = next((i for i, (a, b) in enumerate(zip(g, w)) if a != b), min(len(g), len(w)))
        print(f"  {row if len(row) < 200 else row[:200]!r}\n    at {at}: here {g[at:at + 8]!r}, "
              f"tokenizers {w[at:at + 8]!r}")
    return good


def ids_of(tok, rows, special=True):
    tok.encode_special_tokens = not special
    ids = [e.ids for e in tok.encode_batch(rows, add_special_tokens=special)]
    tok.encode_special_tokens = False
    return ids


def texts_of(tok, rows):
    return [[tok.decode(ids, skip_special_tokens=s) for s in (False, True)] for ids in rows]


def check(encode, folder, tok, rows, round_trip):
    name = os.path.basename(folder)
    want, plain = ids_of(tok, rows), ids_of(tok, rows, False)
    good = compare(f"{name}: ids", rows, run(encode, [folder], rows), want)
    good &= compare(f"{name}: ids, special tokens spelled out", rows,
                    run(encode, ["--plain", folder], rows), plain)
    good &= compare(f"{name}: texts", want, run(encode, [folder], want), texts_of(tok, want))
    if round_trip:
        there = [t[0] for t in run(encode, [folder], plain)]
        good &= compare(f"{name}: decode(encode(x))", rows, there, rows)
    # Ids that do not come from a text: truncated characters, single bytes.
    n = tok.get_vocab_size()
    odd = [[(i * 7919 + k * 104729) % n for k in range(i % 9)] for i in range(2000)]
    return good & compare(f"{name}: texts of any ids", odd, run(encode, [folder], odd),
                          texts_of(tok, odd))


def check_reviews(encode, folder, tok, rows):
    good, name = True, os.path.basename(folder)
    for at in range(0, len(rows), 15000):
        part = rows[at:at + 15000]
        want = ids_of(tok, part)
        good &= compare(f"{name}: ids of reviews from {at}", part, run(encode, [folder], part), want)
        want = want[::20]
        good &= compare(f"{name}: texts of reviews from {at}", want, run(encode, [folder], want),
                        texts_of(tok, want))
    return good


def main():
    encode, work, data = (sys.argv + [None])[1:4]
    lines = list(texts.prose(1500))
    rows = texts.texts(int(os.environ.get("RLHF_TEXTS", "200"))) + texts.long_texts() + texts.planes()
    rows += INSIDE + lines[:200]
    more = list(itertools.islice(reviews(data), int(os.environ.get("RLHF_REVIEWS", "75000")))) if data else []
    good = True
    for form in forms.FORMS:
        tok = forms.make(form, lines + more[::15], 16000 if more else 2000)
        forms.save(tok, form, f"{work}/{form}")
        exact = tok.normalizer is None and form in ("gpt2", "llama3", "smollm", "falcon")  # all bytes, without NFC
        good &= check(encode, f"{work}/{form}", tok, rows, exact)
        good &= check_reviews(encode, f"{work}/{form}", tok, more)
        tok.add_tokens([t for t in ADDED if not t.special])
        tok.add_special_tokens([t for t in ADDED if t.special])
        forms.save(tok, form, f"{work}/{form}-added")
        good &= check(encode, f"{work}/{form}-added", tok, rows, False)
    sys.exit(not good)


if __name__ == "__main__":
    main()
