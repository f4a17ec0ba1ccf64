#!/usr/bin/env python3
"""Writes min_p_vectors.h for test_min_p: the ids that transformers keeps of rows of logits.

The ids come from transformers' warpers for temperature, top-k, top-p and min-p, in generate()'s order and in float64.
Needs torch and transformers. Usage, in this directory: python3 make_min_p_vectors.py > min_p_vectors.h
"""
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
    print("// min_p_vectors.h: made by make_min_p_vectors.py with transformers' warpers.")
    print("// clang-format off\n#include <stdint.h>")
    cases = []
    for k, vocab in enumerate(VOCABS):
        row = [f32(rng.gauss(0, 2.5)) for _ in range(vocab)]
        print(f"static const float min_p_row_{k}[] = {{")
        for i in range(0, vocab, 6):
            print("    " + " ".join(f"{x!r}f," for x in row[i:i + 6]))
        print("};")
        for rule in RULES:
            words = [0] * ((vocab + 31) // 32)
            for v in kept(row, rule):
                words[v // 32] |= 1 << v % 32
            cases.append((k, vocab, rule, words))
    print("static const struct min_p_case {\n    const float *row;\n    int32_t vocab, top_k;")
    print("    double temperature, top_p, min_p;\n    uint32_t kept[10];\n} min_p_cases[] = {")
    for k, vocab, (t, top_k, top_p, min_p), words in cases:
        bits = ", ".join(f"{w:#x}u" for w in words)
        print(f"    {{min_p_row_{k}, {vocab}, {top_k}, {t!r}, {top_p!r}, {min_p!r}, {{{bits}}}}},")
    print("};\n// clang-format on")


if __name__ == "__main__":
    main()
