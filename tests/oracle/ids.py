#!/usr/bin/env python3
"""Compares ids of adversarial and random texts by `encode` (encode.c) with the tokenizers library.

Usage: ids.py ENCODE WORK DIR [DIR ...]

If there is a GGUF file DIR.gguf beside DIR, its ids must be the same, too. In addition to the given directories, it tests directories that it creates in WORK: WordPiece with a token for every
character, with and without lower-casing, and BPE with added tokens.

Exit status 0: all agree; 1: some do not, with the first texts that differ.
"""
import json
import os
import subprocess
import sys

import transformers

from texts import assigned, texts


def make(work, bpe):
    """Vocabularies in which every character has a token; BPE with added tokens and tokens around a text."""
    chars = [c for c in assigned() if not c.isspace() and c != "\0"]
    words = ["the", "river", "ing", "##ing", "ab", "##c"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = list(dict.fromkeys(special + words + chars + ["##" + c for c in chars]))
    dirs = []
    for name, lower in (("wordpiece", True), ("cased", False)):
        dirs.append(f"{work}/{name}")
        tok = transformers.DistilBertTokenizer(vocab={t: i for i, t in enumerate(vocab)},
                                               do_lower_case=lower)
        tok.save_pretrained(dirs[-1])
        with open(f"{dirs[-1]}/config.json", "w") as f:
            json.dump({"model_type": "distilbert"}, f)
    tok = transformers.AutoTokenizer.from_pretrained(bpe)
    tok.add_tokens(["<tool>", "river bank", "\u4e2d\u6587", "  "])
    tok.add_special_tokens({"additional_special_tokens": ["<|user|>", "<|user|>x"]})
    tok.add_bos_token = tok.add_eos_token = True
    dirs.append(f"{work}/added")
    tok.save_pretrained(dirs[-1])
    with open(f"{dirs[-1]}/config.json", "w") as f:
        json.dump({"model_type": "gpt2"}, f)
    return dirs


def check(encode, directory, model, rows):
    """Compares the ids by `model`, which is the directory or a GGUF file, with those of the directory's tokenizer."""
    tok = transformers.AutoTokenizer.from_pretrained(directory)
    lines = "".join(json.dumps(r) + "\n" for r in rows)
    out = subprocess.run([encode, model], input=lines, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{model}: {out.stderr}")
    got = [json.loads(line) for line in out.stdout.splitlines()]
    want = tok(rows).input_ids
    wrong = [(r, g, w) for r, g, w in zip(rows, got, want) if g != w]
    print(f"{model}: {len(rows) - len(wrong)} of {len(rows)} texts have the same ids", flush=True)
    for row, g, w in wrong[:5]:
        print(f"  {row!r}\n    here {g}\n    tokenizers {w}")
    return len(got) == len(rows) and not wrong


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    rows = texts(int(os.environ.get("RLHF_TEXTS", "1500")))
    dirs = sys.argv[3:] + make(sys.argv[2], sys.argv[3])
    pairs = [(d, m) for d in dirs for m in (d, d + ".gguf") if os.path.exists(m)]
    good = [check(sys.argv[1], d, m, rows) for d, m in pairs]
    sys.exit(not all(good))
