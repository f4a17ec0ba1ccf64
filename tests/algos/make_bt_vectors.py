#!/usr/bin/env python3
"""Float64 reference of bradley_terry.so, which writes the vectors of test_bradley_terry.

An independent implementation of docs/algorithms/bradley_terry.md. Two responses are compared by -log sigmoid, more
responses by softmax cross-entropy. Derivatives are central differences. Run it in this directory:
python3 make_bt_vectors.py > bt_vectors.h
"""
import math
import random

from make_batch import c_array, f32, mean

CASES = [("plain", {}), ("margin", dict(margin=0.7)), ("centred", dict(center_coef=0.05)),
         ("both", dict(margin=0.3, center_coef=0.2))]
ROW_CASES = [("row_margin", {}), ("row_both", dict(margin=0.3, center_coef=0.2))]
ROW_MARGIN = [0.5, 0.0, 1.25, -0.75, 2.0, 0.125]  # of the data rows
SIZES, BEST = [2, 2, 4, 3, 2, 4], [0, 1, 2, 0, 0, 3]


def group_loss(r, best, margin, centre):
    if len(r) == 2:
        d = r[best] - r[1 - best] - margin
        loss = -math.log(1 / (1 + math.exp(-d)))
        return loss + centre * (r[0] + r[1]) ** 2
    z = [math.exp(x + (0 if j == best else margin)) for j, x in enumerate(r)]
    return -math.log(z[best] / math.fsum(z)) + centre * (2 * mean(r)) ** 2


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


def print_cases(table, groups, cases, rows):
    for name, o in cases:
        c_array("bt_" + name, derivative(groups, {**o, **rows}), exact=False)
    print(f"static const struct preference_case {table}[] = {{")
    m = ", ".join(f"{v:.12g}" for v in metrics(groups))  # accuracy, margin, chosen, rejected
    for name, o in cases:
        opts = ",".join(f"{k}={v}" for k, v in o.items())
        print(f'    {{"{opts}", {loss(groups, **o, **rows)!r}, bt_{name},\n     {{{m}}}}},')
    print("};")


def main():
    rng = random.Random(8)
    groups = [[f32(rng.gauss(0.2, 1.5)) for _ in range(k)] for k in SIZES]
    print("// bt_vectors.h: made by make_bt_vectors.py from its own float64 reference.")
    print("// clang-format off\n#include \"algos/preference_case.h\"")
    print(f"enum {{ BT_N = {sum(SIZES)}, BT_GROUPS = {len(SIZES)} }};")
    c_array("bt_group", [7 + i for i, k in enumerate(SIZES) for _ in range(k)], "int32_t")
    c_array("bt_label", [int(j == b) for k, b in zip(SIZES, BEST) for j in range(k)], "int32_t")
    c_array("bt_reward", [x for r in groups for x in r])
    print_cases("bt_cases", groups, CASES, {})
    c_array("bt_row_margins", [m for k, m in zip(SIZES, ROW_MARGIN) for _ in range(k)], "float")
    print_cases("bt_row_cases", groups, ROW_CASES, dict(row_margin=ROW_MARGIN))
    print("// clang-format on")


if __name__ == "__main__":
    main()
