#!/usr/bin/env python3
"""The hash chain of a run as docs/verifying.md defines it, written from that page alone.

    chain.py digests RUN        checks that the digests of rows, rewards and metrics are those of the run's files
    chain.py forge RUN PHASE    gives the phase other rows, and makes all heads and seals consistent again
"""
import hashlib
import json
import math
import re
import struct
import sys


def lines(path):
    with open(path) as f:
        return [json.loads(text) for text in f]


def floats(values):
    known = (math.nan if v is None else v + 0.0 for v in values)  # -0 + 0 is 0
    return b"".join(struct.pack("<f", v) for v in known)


def ints(values):
    return b"".join(struct.pack("<i", v) for v in values)


def row_bytes(r):
    out = struct.pack("<q", r["prompt"]) + ints([r["group"], r["finished"], r["prompt_length"], len(r["ids"])])
    out += ints(r["ids"]) + floats(r["logp_sampled"])
    if "segments" in r:
        out += ints(n if by == "policy" else -n for by, n in r["segments"]) + r["end"].encode() + b"\0"
    return out


def reward_bytes(r):
    out = floats([r["score"]]) + floats(r["token_reward"])
    if "segments" in r:
        out += floats(r["paid"]) + ints([{None: 0, "right": 1, "wrong": 2}[r["verdict"]]])
    return out


def is_steady(name):
    return not ({"time", "perf"} & set(name.split("/"))) and not re.search("/(idle_ratio|waiting)$", name)


def metric_bytes(name, value):
    return name.encode() + b"\0" + struct.pack("<d", math.nan if value is None else value + 0.0)


def digests(run):
    rows = [r for r in lines(f"{run}/rollouts.jsonl") if "row" in r]
    metrics = {m["phase"]: m for m in lines(f"{run}/metrics.jsonl")}
    seen = 0
    for link in (v for v in lines(f"{run}/chain.jsonl") if v.get("rows")):
        phase = link["phase"]
        mine = [r for r in rows if r["phase"] == phase]
        steady = {k: v for k, v in metrics[phase].items() if k != "phase" and is_steady(k)}
        for key, parts in (("rows", map(row_bytes, mine)), ("rewards", map(reward_bytes, mine)),
                           ("metrics", (metric_bytes(k, v) for k, v in steady.items()))):
            is_now = hashlib.sha256(b"".join(parts)).hexdigest()
            if is_now != link[key]:
                sys.exit(f"{run}: phase {phase}: the digest of {key} is {is_now}, not {link[key]}")
        seen += len(mine) > 0
    print(f"{run}: {seen} phases")


def head_of(before, line, text):
    parts = "".join(f"{key} {line.get(key) or 'none'}\n" for key in ("rows", "rewards", "metrics"))
    if "begin" in line:
        begin = re.search(r'"begin": (.*), "head": "', text).group(1)
        parts = f"begin {begin}\n"
    return hashlib.sha256(f"rlhf-chain-1\n{before}\n{line['phase']}\n{parts}".encode()).hexdigest()


def forge(run, phase):
    out, head = "", ""
    with open(f"{run}/chain.jsonl") as f:
        texts = f.readlines()
    for text in texts:
        line = json.loads(text)
        if line["phase"] == phase and "rows" in line:
            text = text.replace(line["rows"], "0" * 64)
            line["rows"] = "0" * 64
        if "head" in line:
            head = head_of(head, line, text)
            text = text.replace(line["head"], head)
        if "seal" in line:
            start = text[:text.index(', "seal"')]
            text = f'{start}, "seal": "{hashlib.sha256((out + start).encode()).hexdigest()}"}}\n'
        out += text
    with open(f"{run}/chain.jsonl", "w") as f:
        f.write(out)


if __name__ == "__main__":
    if sys.argv[1] == "digests":
        digests(sys.argv[2])
    else:
        forge(sys.argv[2], int(sys.argv[3]))
