#!/usr/bin/env python3
"""Writes divergence_vectors.h for test_divergence: the divergences of lm_head and their derivatives in float64.

The divergences follow the definitions in compute.h, over the ids that a rule keeps. The derivatives are
differences of the divergence itself, by Richardson's rule, so that no formula for them is needed.
Usage, in this directory: python3 make_divergence_vectors.py > divergence_vectors.h
"""
import math
import random
import struct

VOCABS = [2, 7, 40]
KINDS = [(1, 0.0), (2, 0.5), (2, 0.1), (2, 0.9)]  # forward, Jensen-Shannon
# temperature, top_k, top_p, support
RULES = [(1.0, 0, 1.0, 0), (0.6, 0, 1.0, 0), (1.0, 5, 1.0, 0), (1.5, 0, 0.8, 0), (1.0, 0, 1.0, 1)]


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def softmax(z, kept, temperature):
    top = max(z[v] for v in kept)
    e = {v: math.exp((z[v] - top) / temperature) for v in kept}
    total = math.fsum(e.values())
    return {v: x / total for v, x in e.items()}


def kept_by(z, rule, vocab):
    temperature, top_k, top_p, support = rule
    order = sorted(range(vocab), key=lambda v: (-z[v], v))
    if support:
        return [v for v in range(vocab) if v % 3 != 1]
    if top_k:
        order = order[:top_k]
    if top_p < 1:
        p, total, n = softmax(z, order, temperature), 0.0, 0
        while total < top_p:
            total += p[order[n]]
            n += 1
        order = order[:n]
    return sorted(order)


def divergence(z, r, kept, temperature, kind, beta):
    p, q = softmax(z, kept, temperature), softmax(r, kept, temperature)
    if kind == 1:
        return math.fsum(q[v] * math.log(q[v] / p[v]) for v in kept)
    m = {v: beta * q[v] + (1 - beta) * p[v] for v in kept}
    return (beta * math.fsum(q[v] * math.log(q[v] / m[v]) for v in kept) +
            (1 - beta) * math.fsum(p[v] * math.log(p[v] / m[v]) for v in kept))


def slope(f, z, v):
    def central(h):
        a, b = list(z), list(z)
        a[v] += h
        b[v] -= h
        return (f(a) - f(b)) / (2 * h)
    return (4 * central(5e-4) - central(1e-3)) / 3


def numbers(xs):
    return ", ".join(f"{x!r}" for x in xs)


def main():
    rng = random.Random(1914)
    print("// divergence_vectors.h: made by make_divergence_vectors.py.")
    print("// clang-format off\n#include <stdint.h>")
    cases = []
    for i, vocab in enumerate(VOCABS):
        z = [f32(rng.gauss(0, 2)) for _ in range(vocab)]
        r = [f32(x + rng.gauss(0, 1)) for x in z]
        print(f"static const float divergence_p_{i}[] = {{{numbers(z)}}};")
        print(f"static const float divergence_q_{i}[] = {{{numbers(r)}}};")
        for rule in RULES:
            kept = kept_by(z, rule, vocab)
            for kind, beta in KINDS:
                n = len(cases)
                f = lambda x: divergence(x, r, kept, rule[0], kind, beta)
                g = [slope(f, z, v) if v in kept else 0.0 for v in range(vocab)]
                print(f"static const double divergence_slope_{n}[] = {{{numbers(g)}}};")
                words = [sum(1 << (v - 32 * w) for v in kept if v // 32 == w)
                         for w in range((vocab + 31) // 32)]
                cases.append((i, vocab, rule, kind, beta, f(z), kept[0], n, words))
    print("static const struct divergence_case {\n    const float *p, *q;\n    const double *slope;")
    print("    int32_t vocab, divergence, top_k, support, target, reserved;")
    print("    double beta, temperature, top_p, value;\n    uint32_t kept[2];\n} divergence_cases[] = {")
    for i, vocab, (t, top_k, top_p, support), kind, beta, value, target, n, words in cases:
        bits = ", ".join(f"{w:#x}u" for w in words)
        print(f"    {{divergence_p_{i}, divergence_q_{i}, divergence_slope_{n}, {vocab}, {kind}, {top_k}, "
              f"{support}, {target}, 0, {beta!r}, {t!r}, {top_p!r}, {value!r}, {{{bits}}}}},")
    print("};\n// clang-format on")


if __name__ == "__main__":
    main()
