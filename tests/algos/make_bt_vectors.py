#!/usr/bin/env python3
"""Float64 reference of bradley_terry.so, which writes the vectors of test_bradley_terry.

An independent implementation of docs/algorithms/bradley_terry.md. Two responses are compared by -log sigmoid, more
responses by softmax cross-entropy. Derivatives are central differences. Run it in this directory:
python3 make_bt_vectors.py > bt_vectors.json
"""
import math
import random

from make_batch import f32, mean, print_lines, short

CASES = [("plain", {}), ("margin", dict(margin=0.7)), ("centred", dict(center_coef=0.05)),
         ("both", dict(margin=0.3, center_coef=0.2))]
ROW_CASES = [("row_margin", {}), ("row_both", dict(margin=0.3, center_coef=0.2))]
ROW_MARGIN = [0.5, 0.0, 1.25, -0.75, 2.0, 0.125]  # of the data rows
SIZES, BEST = [2, 2, 4, 3, 2, 4], [0, 1, 2, 0, 0, 3]


def group_loss(r, best, margin, center):
    if len(r) == 2:
        d = r[best] - r[1 - best] - margin
        loss = -math.log(1 / (1 + math.exp(-d)))
        return loss + center * (r[0] + r[1]) ** 2
    z = [math.exp(x + (0 if j == best else margin)) for j, x in enumerate(r)]
    return -math.log(z[best] / math.fsum(z)) + center * (2 * mean(r)) ** 2


def loss(groups, margin=0.0, center_coef=0.0, row_margin=[0.0] * len(SIZES)):
    n = sum(SIZES)
    return math.fsum(len(r) / n * group_loss(r, b, margin + m, center_coef)
                     for r, b, m in zip(groups, BEST, row_margin))


def derivative(groups, o):
    out, h = [], 1e-5
    for r in groups:
        for j in range(len(r)):
            x = r[j]
            r[j] = x + h
            up = loss(groups, **o)
            r[j] = x - h
            down = loss(groups, **o)
            r[j] = x
            out.append((up - down) / (2 * h))
    return out


def metrics(groups):
    chosen = [r[b] for r, b in zip(groups, BEST)]
    others = [[x for j, x in enumerate(r) if j != b] for r, b in zip(groups, BEST)]
    rejected = [mean(x) for x in others]
    return [mean([float(c > max(x)) for c, x in zip(chosen, others)]),
            mean(chosen) - mean(rejected), mean(chosen), mean(rejected)]


def cases_of(groups, cases, rows):
    return [{"name": name, "options": ",".join(f"{k}={v}" for k, v in o.items()), "loss": loss(groups, **o, **rows),
             "metrics": [short(v, 12) for v in metrics(groups)],
             "d": [short(v, 9) for v in derivative(groups, {**o, **rows})]} for name, o in cases]


def main():
    rng = random.Random(8)
    groups = [[f32(rng.gauss(0.2, 1.5)) for _ in range(k)] for k in SIZES]
    print_lines({"group": [7 + i for i, k in enumerate(SIZES) for _ in range(k)],
                 "label": [int(j == b) for k, b in zip(SIZES, BEST) for j in range(k)],
                 "reward": [x for r in groups for x in r],
                 "row_margins": [m for k, m in zip(SIZES, ROW_MARGIN) for _ in range(k)],
                 "cases": cases_of(groups, CASES, {}),
                 "row_cases": cases_of(groups, ROW_CASES, dict(row_margin=ROW_MARGIN))})


if __name__ == "__main__":
    main()
