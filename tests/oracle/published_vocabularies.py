#!/usr/bin/env python3
"""Compares ids by `encode` (encode.c) on published vocabularies, which transformers converts from GGUF files to
tokenizer.json, with the tokenizers library.

Usage: published_vocabularies.py ENCODE WORK DIR        (DIR holds *.gguf files, which are never committed)

Beside NAME.gguf may be NAME.gguf.inp, texts, and NAME.gguf.out, the ids that llama.cpp gives to them. How many of these
are the same is printed, too; transformers converts some vocabularies to other rules than llama.cpp has.

Then the GGUF file itself is opened, and its ids of the texts must be those of llama.cpp, except for characters that can
be composed (qwen35). Where `encode` refuses the file, the reason is printed.

Prints lines for each vocabulary. Exit status 1: ids differ from those of the library or of llama.cpp.
"""
import contextlib
import glob
import io
import json
import os
import subprocess
import sys
import unicodedata

import tokenizers
import transformers as hf

from texts import texts

SEPARATOR = "\n__ggml_vocab_test__\n"


def convert(path, to):
    """Writes the tokenizer as a directory. Returns the library's, or None where transformers cannot read the file."""
    folder, name = os.path.split(path)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            tok = hf.AutoTokenizer.from_pretrained(folder, gguf_file=name)
    except Exception as error:
        print(f"{name}: transformers cannot read it: {' '.join(str(error).split())[:70]}")
        return None
    tok.save_pretrained(to)
    with open(f"{to}/config.json", "w") as f:
        json.dump({"model_type": "gpt2"}, f)
    return tokenizers.Tokenizer.from_file(f"{to}/tokenizer.json")


def known(path):
    """Pairs (text, ids) that come with the file."""
    if not os.path.exists(path + ".inp"):
        return []
    with open(path + ".inp", encoding="utf-8", newline="") as f:
        inputs = f.read().split(SEPARATOR)
    with open(path + ".out") as f:
        outputs = [[int(x) for x in line.split()] for line in f.read().split("\n")]
    return list(zip(inputs, outputs))


def run(encode, model, rows):
    """The ids of the texts, or why `encode` refuses the model."""
    out = subprocess.run([encode, model], input="".join(json.dumps(r) + "\n" for r in rows), capture_output=True, text=True)
    return out.stderr.strip() if out.returncode else [json.loads(line) for line in out.stdout.splitlines()]


def check_file(encode, path):
    """Compares the ids that the file itself gives with those of llama.cpp, with or without bos."""
    name, pairs = os.path.basename(path), known(path)
    got = run(encode, path, [text for text, _ in pairs] or ["a"])
    if isinstance(got, str):
        print(f"{name}: as a model: refused: {got.split(':', 1)[-1].strip():.100}")
        return True
    composed = [unicodedata.normalize("NFC", text) == text for text, _ in pairs]
    wrong = [(t, g, w) for (t, w), g, c in zip(pairs, got, composed) if g != w and g[1:] != w and c]
    print(f"{name}: as a model: {sum(composed) - len(wrong)} of {sum(composed)} texts have the ids of llama.cpp", flush=True)
    for text, g, w in wrong[:3]:
        print(f"  {text!r:.80}\n    here {g}\n    llama.cpp {w}")
    return len(got) == max(len(pairs), 1) and not wrong


def check(encode, path, to):
    name, tok = os.path.basename(path), convert(path, to)
    if not tok:
        return True
    pairs = known(path)
    rows = [text for text, _ in pairs] + texts(200)
    got = run(encode, to, rows)
    if isinstance(got, str):
        print(f"{name}: refused: {got}")
        return True
    wrong = [(r, g, w) for r, g, w in zip(rows, got, (e.ids for e in tok.encode_batch(rows))) if g != w]
    same = sum(g == w or g[1:] == w for g, (_, w) in zip(got, pairs))
    print(f"{name}: {len(rows) - len(wrong)} of {len(rows)} texts have the ids of the library"
          + (f"; {same} of {len(pairs)} those of llama.cpp" if pairs else ""), flush=True)
    for row, g, w in wrong[:3]:
        print(f"  {row!r:.80}\n    here {g}\n    tokenizers {w}")
    return len(got) == len(rows) and not wrong


if __name__ == "__main__":
    hf.logging.set_verbosity_error()
    found = sorted(glob.glob(sys.argv[3] + "/*.gguf"))
    sys.exit(not all([check(sys.argv[1], path, f"{sys.argv[2]}/{i}") & check_file(sys.argv[1], path)
                      for i, path in enumerate(found)]))
