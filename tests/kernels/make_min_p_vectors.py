#!/usr/bin/env python3
"""Writes min_p_vectors.json for test_min_p: the ids that transformers keeps of rows of logits.

The ids come from transformers' warpers for temperature, top-k, top-p and min-p, in generate()'s order and in float64.
Needs torch and transformers. Usage, in this directory: python3 make_min_p_vectors.py > min_p_vectors.json
"""
import json
import random
import struct

import torch
from transformers.generation.logits_process import (MinPLogitsWarper, TemperatureLogitsWarper,
                                                    TopKLogitsWarper, TopPLogitsWarper)

VOCABS = [2, 7, 40, 300]
# temperature, top_k, top_p, min_p
RULES = [(1.0, 0, 1.0, 0.05), (1.0, 0, 1.0, 0.3), (0.5, 0, 1.0, 0.1), (2.0, 0, 1.0, 0.1),
         (1.0, 5, 1.0, 0.2), (1.0, 0, 0.8, 0.15), (0.7, 20, 0.95, 0.02), (1.3, 0, 1.0, 1.0),
         (1.0, 0, 1.0, 1e-6)]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def kept(row, rule):
    temperature, top_k, top_p, min_p = rule
    z = torch.tensor([row], dtype=torch.float64)
    warpers = [TemperatureLogitsWarper(temperature)] if temperature != 1 else []
    warpers += [TopKLogitsWarper(top_k)] if top_k else []
    warpers += [TopPLogitsWarper(top_p)] if top_p < 1 else []
    for w in warpers + [MinPLogitsWarper(min_p)]:
        z = w(None, z)
    return [v for v, x in enumerate(z[0].tolist()) if x != float("-inf")]


def main():
    rng = random.Random(77)
    rows, cases = [], []
    for k, vocab in enumerate(VOCABS):
        row = [f32(rng.gauss(0, 2.5)) for _ in range(vocab)]
        rows.append(row)
        for rule in RULES:
            words = [0] * ((vocab + 31) // 32)
            for v in kept(row, rule):
                words[v // 32] |= 1 << v % 32
            cases.append(dict(zip(("row", "temperature", "top_k", "top_p", "min_p", "kept"), (k, *rule, words))))
    lines = lambda items: ",\n  ".join(json.dumps(x) for x in items)
    print(f'{{"rows": [\n  {lines(rows)}],\n "cases": [\n  {lines(cases)}]}}')


if __name__ == "__main__":
    main()
