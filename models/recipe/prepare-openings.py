#!/usr/bin/env python3
"""Write openings of reviews: the prompts for the responses in the reward model's pairs.

usage: prepare-openings.py DATA_DIR

DATA_DIR is the output directory of prepare-data.py. Writes openings.jsonl (20,000 rows of 2 to 8 words,
from texts that sft saw) and openings-heldout.jsonl (1,000 rows from the held-out reviews).
"""
import gzip
import json
import os
import random
import sys


def openings(path, n, rng):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        texts = [json.loads(line)["text"] for line in f]
    seen = set()
    for text in rng.sample(texts, len(texts)):
        opening = " ".join(text.split()[: rng.randint(2, 8)])
        if "<" in opening or len(opening) < 6 or opening in seen:
            continue
        seen.add(opening)
        yield {"prompt": opening}
        if len(seen) == n:
            return


def main():
    data, rng = sys.argv[1], random.Random(1)
    for name, source, n in (
        ("openings.jsonl", "texts.jsonl.gz", 20000),
        ("openings-heldout.jsonl", "heldout.jsonl.gz", 1000),
    ):
        with open(os.path.join(data, name), "w", encoding="utf-8") as f:
            for row in openings(os.path.join(data, source), n, rng):
                f.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
