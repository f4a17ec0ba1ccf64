#!/usr/bin/env python3
"""Mix labelled rows with rows that the first classifier labelled.

usage: mix-labels.py OUT.jsonl.gz PSEUDO.jsonl LABELLED.jsonl.gz...

All labelled rows are taken. Of the pseudo-labelled ones all negatives are taken and 1.2 times as
many positives, since the first classifier is surer of positive reviews.
"""
import gzip
import json
import random
import sys

POSITIVE_SHARE = 1.2


def main():
    out_path, pseudo_path, *labelled_paths = sys.argv[1:]
    random.seed(0)
    rows = []
    for path in labelled_paths:
        with gzip.open(path, "rt", encoding="utf-8") as f:
            rows += [json.loads(line) for line in f]
    with open(pseudo_path, encoding="utf-8") as f:
        pseudo = [json.loads(line) for line in f]
    negative = [r for r in pseudo if r["label"] == 0]
    positive = sorted((r for r in pseudo if r["label"] == 1), key=lambda r: -r["p"])
    positive = random.sample(positive, min(len(positive), int(len(negative) * POSITIVE_SHARE)))
    with gzip.open(out_path, "wt", encoding="utf-8") as f:
        for r in rows + negative + positive:
            f.write(json.dumps({"text": r["text"], "label": r["label"]}) + "\n")


if __name__ == "__main__":
    main()
