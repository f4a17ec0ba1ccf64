#!/usr/bin/env python3
"""Train the byte-level BPE vocabulary of the default policy.

usage: train-tokenizer.py TEXT.jsonl.gz OUT_DIR

Reads {"text"} rows, writes vocab.json and merges.txt with 8,192 entries; <|endoftext|> is id 0.
Needs the PyPI package `tokenizers`.
"""
import gzip
import json
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB_SIZE = 8192


def texts(path):
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for row in rows:
            yield json.loads(row)["text"]


def main():
    source, out = sys.argv[1:3]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(source), trainer)
    tokenizer.model.save(out)


if __name__ == "__main__":
    main()
