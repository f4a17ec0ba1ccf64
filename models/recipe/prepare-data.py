#!/usr/bin/env python3
"""Split the IMDB reviews into the files that the stages of the recipe read.

usage: prepare-data.py IMDB_DIR OUT_DIR

IMDB_DIR holds train.jsonl.gz ({"text", "label"}, 25,000 rows) and unsup.jsonl.gz ({"text"}).
Writes
  heldout.jsonl.gz    the last 2,500 labelled reviews; no stage trains on them
  texts.jsonl.gz      all other texts, for sft
  labelled.jsonl.gz   the other 22,500 labelled reviews, for classify
"""
import gzip
import json
import os
import sys

HELD_OUT = 2500


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


def write(path, items):
    with gzip.open(path, "wt", encoding="utf-8") as f:
        for item in items:
            f.write(json.dumps(item) + "\n")


def main():
    source, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    labelled = [{"text": r["text"], "label": r["label"]} for r in rows(os.path.join(source, "train.jsonl.gz"))]
    unlabelled = [{"text": r["text"]} for r in rows(os.path.join(source, "unsup.jsonl.gz"))]
    train, held_out = labelled[:-HELD_OUT], labelled[-HELD_OUT:]
    write(os.path.join(out, "heldout.jsonl.gz"), held_out)
    write(os.path.join(out, "texts.jsonl.gz"), [{"text": r["text"]} for r in train] + unlabelled)
    write(os.path.join(out, "labelled.jsonl.gz"), train)


if __name__ == "__main__":
    main()
