#!/usr/bin/env python3
"""Ids of adversarial and random texts by `encode` (encode.c) and by the tokenizers library.

Usage: ids.py ENCODE WORK DIR [DIR ...]

Beside the directories given it looks at some that it makes in WORK: WordPiece with a token for every
character, lower-casing and not, and BPE with tokens that were added.

Exit status 0: all agree; 1: some do not, with the first texts that differ.
"""
import json
import os
import random
import subprocess
import sys
import unicodedata

import transformers

SPECIAL = ["<|endoftext|>", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]", "<|endoftext", "[MASK",
           "<tool>", "river bank", "<|user|>", "<|user|>x", "<|user"]
PARTS = SPECIAL + [
    "don't", "DON'T", "we've", "'ll", "'", "''re", "\u2019s", " ", "  ", "   ", "\t", "\n", "\r\n",
    "\n\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u1680", "\u180e", "\u200b", "\ufeff",
    "\x00", "\x01", "\x1c", "\x1f", "\x7f", "\ufffd", "\ufffe", "a", "A", "\u00e9", "e\u0301", "\u0130", "\u00df",
    "\u1e9e", "\ufb01", "\u01c5", "\u03c3\u03c2", "\u05e9\u05c1", "\u0643\u0650", "\u0915\u094d\u0937", "\ud55c\uad6d", "\u1112\u1161\u11ab", "\u4e2d\u6587",
    "\U00020000", "\u3042", "\u0e20\u0e32", "\U0001f468\u200d\U0001f469", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea",
    "0", "12", "1,000.50", "\u0664", "\u2167", "\u00b2", "\u00bd", "\U0001d7d9", "\uff12", "!", "...", "\u2014", "\u00bf",
    "$", "^", "`", "\u20ac", "+", "=", "\u00ac", "_", "__", "-", "#", "##", "##ing", "@", "<", ">", "/", "\\", "|",
    "http://a.b/c?d=e&f", "the", " the", "The", "ing", "river", " 1987", "x" * 99, "y" * 101,
    "\u0301", "\u20dd", "\u0489", "\u1d165", "\U0001d165", "\u0344", "\u0f73", "\u212b", "\u1f80", "\u00c5", "\uac01",
]


def assigned():
    """Characters on whose class all versions of Unicode since 8.0 agree: old ones."""
    old = unicodedata.ucd_3_2_0
    return [chr(c) for c in range(0x30000)
            if not 0xD800 <= c < 0xE000 and old.category(chr(c)) != "Cn"
            and old.category(chr(c)) == unicodedata.category(chr(c))]


def texts(n):
    rng, chars = random.Random(5), assigned()
    rows = ["", *PARTS, *(a + b for a in PARTS[:60] for b in (" ", "a", "\u0301", "1", "<|endoftext|>"))]
    for _ in range(n):
        rows.append("".join(rng.choice(PARTS) for _ in range(rng.randint(2, 12))))
        rows.append("".join(rng.choice(chars) for _ in range(rng.randint(1, 24))))
        rows.append("".join(rng.choice((rng.choice(PARTS), rng.choice(chars), " "))
                            for _ in range(rng.randint(2, 16))))
    rows += chars[::29]
    return rows


def make(work, bpe):
    """Vocabularies in which no character is lost among [UNK]; BPE with added tokens and a frame."""
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


def check(encode, directory, rows):
    tok = transformers.AutoTokenizer.from_pretrained(directory)
    lines = "".join(json.dumps(r) + "\n" for r in rows)
    out = subprocess.run([encode, directory], input=lines, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{directory}: {out.stderr}")
    got = [json.loads(line) for line in out.stdout.splitlines()]
    want = tok(rows).input_ids
    wrong = [(r, g, w) for r, g, w in zip(rows, got, want) if g != w]
    print(f"{directory}: {len(rows) - len(wrong)} of {len(rows)} texts have the same ids", flush=True)
    for row, g, w in wrong[:5]:
        print(f"  {row!r}\n    here {g}\n    tokenizers {w}")
    return len(got) == len(rows) and not wrong


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    rows = texts(int(os.environ.get("RLHF_TEXTS", "1500")))
    dirs = sys.argv[3:] + make(sys.argv[2], sys.argv[3])
    good = [check(sys.argv[1], d, rows) for d in dirs]
    sys.exit(not all(good))
