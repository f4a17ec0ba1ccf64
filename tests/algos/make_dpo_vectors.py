#!/usr/bin/env python3
"""Float64 reference of dpo.so, which writes the vectors of test_dpo.

An independent implementation of docs/algorithms/dpo.md in plain Python, over every pair of the preferred response and
another response. Derivatives are central differences. Run it in this directory:
python3 make_dpo_vectors.py > dpo_vectors.json
"""
import math
import random

from make_batch import f32, mean, print_lines, short

CASES = [("defaults", {}), ("beta", dict(beta=0.7)), ("smoothed", dict(label_smoothing=0.2)),
         ("even", dict(label_smoothing=0.5, beta=0.4)), ("ipo", dict(loss="ipo")),
         ("ipo_beta", dict(loss="ipo", beta=0.5)),
         ("hinge", dict(loss="hinge", beta=0.4)),
         ("robust", dict(loss="robust", beta=0.3, label_smoothing=0.2)),
         ("sppo_hard", dict(loss="sppo_hard")), ("sppo_beta", dict(loss="sppo_hard", beta=0.7)),
         ("apo_zero", dict(loss="apo_zero", beta=0.6)),
         ("apo_down", dict(loss="apo_down", beta=0.6)),
         ("nca_pair", dict(loss="nca_pair", beta=0.6))]
# Responses of a row, the preferred one, tokens of each response; one response is empty.
BEST = [0, 1, 2, 0, 0]
PROMPT = [2, 1, 3, 1, 2]
LENGTHS = [[3, 2], [4, 1], [2, 5, 3, 1], [1, 0, 2], [6, 6]]
N = sum(len(x) for x in LENGTHS)


def pair(chosen, rejected, o):
    """Loss of a pair; each argument lists the tokens' log-probs of the policy minus those of the reference."""
    beta, eps, kind = o.get("beta", 0.1), o.get("label_smoothing", 0.0), o.get("loss")
    a, b = math.fsum(chosen), math.fsum(rejected)
    sigmoid = lambda v: 1 / (1 + math.exp(-v))
    p, p_a, p_b = sigmoid(beta * (a - b)), sigmoid(beta * a), sigmoid(beta * b)
    if kind == "ipo":
        h = a / max(len(chosen), 1) - b / max(len(rejected), 1)
        return (h - 1 / (2 * beta)) ** 2
    if kind == "hinge":
        return max(0, 1 - beta * (a - b))
    if kind == "robust":
        return (-(1 - eps) * math.log(p) + eps * math.log(1 - p)) / (1 - 2 * eps)
    if kind == "sppo_hard":
        return (a - 1 / (2 * beta)) ** 2 + (b + 1 / (2 * beta)) ** 2
    if kind == "apo_zero":
        return 1 - p_a + p_b
    if kind == "apo_down":
        return p_a + 1 - p
    if kind == "nca_pair":
        return -math.log(p_a) - math.log(1 - p_a) / 2 - math.log(1 - p_b) / 2
    return -(1 - eps) * math.log(p) - eps * math.log(1 - p)


def others(row, best):
    return [r for j, r in enumerate(row) if j != best]


def loss(logp, ref, o):
    total = []
    for row, refs, best in zip(logp, ref, BEST):
        d = [[x - f for x, f in zip(a, b)] for a, b in zip(row, refs)]
        total.append(len(row) / N * mean([pair(d[best], r, o) for r in others(d, best)]))
    return math.fsum(total)


def derivative(logp, ref, o):
    out, h = [], 1e-5
    for g, row in enumerate(logp):
        for r in row:
            out += [0.0] * PROMPT[g]
            for t in range(len(r)):
                x = r[t]
                r[t] = x + h
                up = loss(logp, ref, o)
                r[t] = x - h
                down = loss(logp, ref, o)
                r[t] = x
                out.append((up - down) / (2 * h))
    return out


def metrics(logp, ref, o):
    beta = o.get("beta", 0.1)
    m = [[] for _ in range(6)]
    for row, refs, best in zip(logp, ref, BEST):
        u = [beta * (math.fsum(a) - math.fsum(b)) for a, b in zip(row, refs)]
        values = [float(u[best] > max(others(u, best))), u[best] - mean(others(u, best)), u[best],
                  mean(others(u, best)), math.fsum(row[best]),
                  mean([math.fsum(r) for r in others(row, best)])]
        for k, v in enumerate(values):
            m[k].append(v)
    return [mean(x) for x in m]


def main():
    rng = random.Random(21)
    ref = [[[f32(-rng.uniform(0.1, 4)) for _ in range(k)] for k in g] for g in LENGTHS]
    logp = [[[f32(f + rng.gauss(0, 0.8)) for f in r] for r in g] for g in ref]
    offset, flat = [0], [(p, k) for p, g in zip(PROMPT, LENGTHS) for k in g]
    for p, k in flat:
        offset.append(offset[-1] + p + k)
    ragged = lambda rows: [x for p, g in zip(PROMPT, rows) for r in g for x in [0.0] * p + r]
    print_lines({"offset": offset, "prompt_len": [p for p, _ in flat],
                 "group": [3 + i for i, g in enumerate(LENGTHS) for _ in g],
                 "label": [int(j == b) for g, b in zip(LENGTHS, BEST) for j in range(len(g))],
                 "ref": ragged(ref), "logp": ragged(logp),
                 "cases": [{"name": name, "options": ",".join(f"{k}={v}" for k, v in o.items()),
                            "loss": loss(logp, ref, o), "metrics": [short(v, 12) for v in metrics(logp, ref, o)],
                            "d": [short(v, 9) for v in derivative(logp, ref, o)]} for name, o in CASES]})


if __name__ == "__main__":
    main()
