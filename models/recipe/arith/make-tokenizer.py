#!/usr/bin/env python3
"""Write the tokenizer of models/arith: a token for each digit, operator and "=".

usage: make-tokenizer.py OUT_DIR

The tokenizer is a BPE of characters without merges. It drops spaces and reads the typographic signs for
minus and times as "-" and "*". Any other character becomes <|unknown|>.
"""
import json
import os
import sys

CHARACTERS = "0123456789+-*="
END, UNKNOWN = "<|endoftext|>", "<|unknown|>"
REPLACE = {" ": "", "\u2212": "-", "\u00d7": "*"}


def main():
    out = sys.argv[1]
    vocab = {c: i for i, c in enumerate((END, UNKNOWN, *CHARACTERS))}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocab[t], "content": t, **special} for t in (END, UNKNOWN)],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in REPLACE.items()
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": UNKNOWN,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [],
        },
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": END,
        "unk_token": UNKNOWN,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 32,
    }
    for name, what in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            json.dump(what, f, indent=2, ensure_ascii=False)
            f.write("\n")


if __name__ == "__main__":
    main()
