#!/usr/bin/env python3
"""Inputs of the fuzz targets: tests/corpus/TARGET.jsonl, one input on each line with its name.

usage: corpus.py TARGET unpack FOLDER     writes each input to a file of its name, as libFuzzer reads them
       corpus.py TARGET add FILE...       adds files, such as findings, under their names

An input is "text" if it is valid UTF-8, and otherwise "bytes": a text whose characters U+0000 to U+00FF are the bytes.
"""
import json
import os
import sys


def line_of(path):
    data = open(path, "rb").read()
    row = {"name": os.path.basename(path)}
    try:
        row["text"] = data.decode()
    except UnicodeDecodeError:
        row["bytes"] = data.decode("latin-1")
    return json.dumps(row, ensure_ascii=False).replace("\x7f", "\\u007f") + "\n"


def main():
    if len(sys.argv) < 4 or sys.argv[2] not in ("unpack", "add"):
        sys.exit(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "..", "corpus", sys.argv[1] + ".jsonl")
    rows = open(path, encoding="utf-8", newline="\n").readlines() if os.path.exists(path) else []
    if sys.argv[2] == "add":
        names = {json.loads(r)["name"] for r in rows}
        for file in sys.argv[3:]:
            if os.path.basename(file) in names:
                sys.exit(f"corpus.py: {sys.argv[1]} has an input {os.path.basename(file)}")
            rows.append(line_of(file))
        with open(path, "w", encoding="utf-8", newline="\n") as out:
            out.writelines(sorted(rows, key=lambda r: json.loads(r)["name"]))
        return
    os.makedirs(sys.argv[3], exist_ok=True)
    for row in map(json.loads, rows):
        data = row["text"].encode() if "text" in row else row["bytes"].encode("latin-1")
        open(os.path.join(sys.argv[3], row["name"]), "wb").write(data)


main()
