#!/usr/bin/env python3
"""Float64 reference of grpo.so with advantage_rewards=each (GDPO); writes the vectors of test_gdpo.

Liu et al. 2026, "GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL Optimization"
(arXiv 2601.05242), with numpy: each reward is normalized within its group, the weighted sum of the results over the
batch. A score that is missing (None) takes part in no mean and no deviation and adds nothing to its row, as in TRL's
multi_objective_aggregation="normalize_then_sum". A group in which a reward gives all rows the same score gets nothing
from that reward. All scores are exact in float32.

Needs numpy. Run it in this directory: python3 make_gdpo_vectors.py > gdpo_vectors.json
"""
import json

import numpy

ROWS, GROUP = 12, 4
CASES = [  # name, number of rewards, weights, missing entries, rewards that are 0 or 1, eps, ddof
    ("two", 2, [1.0, 1.0], [], [], 1e-4, 1), ("weights", 2, [1.0, 0.25], [], [], 1e-4, 1),
    ("biased", 3, [1.0, 0.5, 2.0], [], [], 1e-4, 0), ("eps", 2, [1.0, 1.0], [], [], 0.1, 1),
    ("one", 1, [2.0], [], [], 1e-4, 1), ("binary", 2, [1.0, 1.0], [], [0, 1], 1e-4, 1),
    ("missing", 3, [1.0, 0.5, -0.5], [(1, 0), (6, 1), (7, 2)], [], 1e-4, 1),
    ("unscored", 2, [1.0, 1.0], [(5, 0), (5, 1)], [], 1e-4, 1)]


def normalized(x, eps, ddof):
    """Of one reward in one group."""
    there = x[~numpy.isnan(x)]
    if len(there) == 0 or numpy.ptp(there) == 0:
        return numpy.zeros_like(x)
    return numpy.nan_to_num((x - there.mean()) / (there.std(ddof=ddof) + eps))


def advantages(score, weight, eps, ddof):
    total = numpy.zeros(len(score))
    for k, w in enumerate(weight):
        for at in range(0, len(score), GROUP):
            total[at:at + GROUP] += w * normalized(score[at:at + GROUP, k], eps, ddof)
    scored = ~numpy.isnan(score).all(axis=1)
    mean, std = total[scored].mean(), total[scored].std(ddof=ddof)
    return numpy.where(scored, (total - mean) / (std + eps), 0)


def main():
    rng = numpy.random.default_rng(31)
    out = []
    for name, n, weight, missing, binary, eps, ddof in CASES:
        score = rng.normal(size=(ROWS, n)) * 10.0 ** numpy.arange(n)  # of different sizes
        for k in binary:
            score[:, k] = rng.integers(0, 2, ROWS)
            score[GROUP:2 * GROUP, k] = 1  # a group without spread
        score = score.astype(numpy.float32).astype(numpy.float64)
        for i, k in missing:
            score[i, k] = numpy.nan
        flat = [None if numpy.isnan(x) else x for x in score.flatten().tolist()]
        out.append({"name": name, "eps": eps, "std": "unbiased" if ddof else "biased", "weight": weight, "score": flat,
                    "advantage": advantages(score, weight, eps, ddof).tolist()})
    print(json.dumps({"rows": ROWS, "group": GROUP, "cases": out}).replace('{"name"', '\n{"name"'))


if __name__ == "__main__":
    main()
