#!/usr/bin/env python3
"""Writes divergence_vectors.json for test_divergence: the divergences of lm_head and their derivatives in float64.

The divergences follow the definitions in compute.h, over the ids that a rule keeps. The derivatives are
differences of the divergence itself, by Richardson's rule, so that no formula for them is needed.
Usage, in this directory: python3 make_divergence_vectors.py > divergence_vectors.json
"""
import json
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


def main():
    rng = random.Random(1914)
    rows, cases = [], []
    for i, vocab in enumerate(VOCABS):
        z = [f32(rng.gauss(0, 2)) for _ in range(vocab)]
        r = [f32(x + rng.gauss(0, 1)) for x in z]
        rows.append({"p": z, "q": r})
        for rule in RULES:
            kept = kept_by(z, rule, vocab)
            for kind, beta in KINDS:
                f = lambda x: divergence(x, r, kept, rule[0], kind, beta)
                cases.append({
                    "row": i, "temperature": rule[0], "top_k": rule[1], "top_p": rule[2], "support": rule[3],
                    "divergence": kind, "beta": beta, "target": kept[0], "value": f(z),
                    "kept": [sum(1 << (v - 32 * w) for v in kept if v // 32 == w) for w in range((vocab + 31) // 32)],
                    "slope": [slope(f, z, v) if v in kept else 0.0 for v in range(vocab)]})
    lines = lambda items: ",\n  ".join(json.dumps(x) for x in items)
    print(f'{{"rows": [\n  {lines(rows)}],\n "cases": [\n  {lines(cases)}]}}')


if __name__ == "__main__":
    main()
