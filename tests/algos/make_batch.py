#!/usr/bin/env python3
"""Writes batch_vectors.json, the ragged batch for the vectors of ppo.so, grpo.so and rloo.so. Their
generators share this file's code: small statistics, and printing of cases.

Run it in this directory: python3 make_batch.py > batch_vectors.json
"""
import json
import math
import random
import struct

# Rows of two groups alternate; rows 6 to 8 are a group without spread in score + token rewards.
PROMPT = [2, 1, 3, 1, 2, 1, 2, 2, 1]
RESPONSE = [5, 3, 1, 4, 2, 3, 6, 2, 4]
GROUP = [0, 1, 0, 1, 0, 1, 7, 7, 7]
SCORE = [0.9, 0.2, 0.55, 0.7, 0.3, 0.45, 0.3, 0.3, 0.3]
FINISHED = [1, 1, 0, 1, 1, 1, 0, 1, 1]  # whether a response ended before it was cut off
MAX_LEN, N = 8, len(PROMPT)


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def make_batch():
    rng = random.Random(20250405)
    rows = lambda f: [[f32(f()) for _ in range(k)] for k in RESPONSE]
    b = dict(old=rows(lambda: -rng.uniform(0.1, 4)), token_reward=rows(lambda: rng.gauss(0, 0.05)),
             entropy=rows(lambda: rng.uniform(0, 3)), kl=rows(lambda: rng.uniform(0, 0.4)))
    near = lambda key, s: [[f32(x + rng.gauss(0, s)) for x in row] for row in b[key]]
    b["logp"], b["ref"] = near("old", 0.15), near("old", 0.3)
    b["value_old"] = rows(lambda: rng.gauss(0.4, 0.5))
    b["value"] = near("value_old", 0.15)
    for i in (6, 7, 8):
        b["token_reward"][i] = [0.0] * RESPONSE[i]
    b["score"] = [f32(x) for x in SCORE]
    return b


def flat(rows):
    return [x for row in rows for x in row]


def mean(xs):
    return math.fsum(xs) / len(xs)


def var(xs, unbiased):
    m = mean(xs)
    return math.fsum((x - m) ** 2 for x in xs) / (len(xs) - 1 if unbiased else len(xs))


def kl(kind, x, f):
    return {"k1": x - f, "k2": (x - f) ** 2 / 2, "k3": math.exp(f - x) - (f - x) - 1}[kind]


def groups():
    return [[i for i in range(N) if GROUP[i] == g] for g in sorted(set(GROUP))]


def ratios(logp, old, level):
    d = [x - y for x, y in zip(logp, old)]
    if level == "sequence":
        d = [sum(d)] * len(d)
    elif level == "sequence_mean":
        d = [sum(d) / len(d)] * len(d)
    return [math.exp(x) for x in d]


def paid(b):
    """The total reward of each row."""
    return [s + math.fsum(r) for s, r in zip(b["score"], b["token_reward"])]


def ragged(rows):
    return [x for p, row in zip(PROMPT, rows) for x in [0.0] * p + list(row)]


def short(x, digits):
    return float(f"%.{digits}g" % x)


def print_lines(members):
    """A JSON object with a line for each member, or for each entry if the member is a list of objects."""
    def text(v):
        if isinstance(v, list) and isinstance(v[0], dict):
            return "[\n  " + ",\n  ".join(map(json.dumps, v)) + "]"
        return json.dumps(v)
    print("{" + ",\n ".join(f'"{k}": {text(v)}' for k, v in members.items()) + "}")


def print_case(name, options, arrays, metrics, digits=9, **more):
    """One case as a line of JSON, with the members of struct vector_case. Arrays of zeros are left out."""
    text = lambda v: str(v).lower() if isinstance(v, bool) else str(v)
    case = {"name": name, **more, "options": ",".join(f"{k}={text(v)}" for k, v in options.items())}
    for key, rows in arrays.items():
        if any(flat(rows)):
            case[key] = [short(x, digits) for x in ragged(rows)]
    case["metrics"] = {k: short(v, digits + 1) for k, v in metrics.items()}
    print(json.dumps(case))


def main():
    b = make_batch()
    offset = [0]
    for p, k in zip(PROMPT, RESPONSE):
        offset.append(offset[-1] + p + k)
    keys = ("token_reward", "old", "ref", "logp", "entropy", "kl", "value_old", "value")
    print_lines({"max_len": MAX_LEN, "offset": offset, "prompt_len": PROMPT, "group": GROUP, "finished": FINISHED,
                 "score": b["score"], **{key: ragged(b[key]) for key in keys}})


if __name__ == "__main__":
    main()
