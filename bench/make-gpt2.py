#!/usr/bin/env python3
"""Writes a GPT-2 124M directory without weights: config.json and a made-up byte-level vocabulary.

usage: make-gpt2.py DIR

The vocabulary has 50,257 entries as in GPT-2: 256 bytes, 50,000 merges of byte pairs, and <|endoftext|>. This
is enough for speed measurements with policy.init=random, where the meaning of tokens does not matter.
"""
import json
import os
import sys

CONFIG = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "bos_token_id": 50256,
    "eos_token_id": 50256,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "tie_word_embeddings": True,
    "vocab_size": 50257,
}


def byte_symbols():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in shown]
    return [chr(b) for b in shown] + [chr(256 + i) for i in range(len(rest))]


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    symbols = byte_symbols()
    pairs = [(a, b) for a in symbols for b in symbols][:50000]
    tokens = symbols + [a + b for a, b in pairs] + ["<|endoftext|>"]
    with open(os.path.join(out, "config.json"), "w", encoding="utf-8") as f:
        json.dump(CONFIG, f, indent=2)
    with open(os.path.join(out, "vocab.json"), "w", encoding="utf-8") as f:
        json.dump({t: i for i, t in enumerate(tokens)}, f, ensure_ascii=False)
    with open(os.path.join(out, "merges.txt"), "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs))


if __name__ == "__main__":
    main()
