#!/usr/bin/env python3
"""Checks the expectations of tests/algos/test_bradley_terry.c for rows of two responses, the only kind in TRL:
compares them with the float64 losses of TRL's reward trainer for given rewards and margins.

Usage: bt_loss.py BT_VECTORS.JSON

Calls RewardTrainer.compute_loss on the pairs of the file, with the rewards instead of a model's outputs. TRL has one
margin, which is the sum of the option's margin and the row's.
"""
import json
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from trl import RewardTrainer

torch.set_default_dtype(torch.float64)


class One:
    """Replaces accelerate's Accelerator with a single process."""

    def gather_for_metrics(self, x):
        return x

    gather = gather_for_metrics


def trl_loss(chosen, rejected, margin, center):
    logits = torch.cat([chosen, rejected])[:, None]
    model = lambda **_: SimpleNamespace(logits=logits)
    model.training = True
    t = SimpleNamespace(model=model, accelerator=One(), _total_train_tokens=0, _tp_size=1,
                        args=SimpleNamespace(center_rewards_coefficient=center),
                        _metrics={"train": defaultdict(list)})
    inputs = {"margin": margin, "attention_mask": torch.ones(1)}
    return RewardTrainer.compute_loss(t, model, inputs)


def main():
    vectors = json.load(open(sys.argv[1]))
    group, label, rows = vectors["group"], vectors["label"], vectors["row_margins"]
    pairs = [i for i in range(len(group) - 1)
             if group.count(group[i]) == 2 and group[i] == group[i + 1]]
    best = [i if label[i] else i + 1 for i in pairs]
    other = [i + 1 if label[i] else i for i in pairs]
    worst, cases = 0, 0
    for case in vectors["cases"] + vectors["row_cases"]:
        o = {k: float(v) for k, v in (p.split("=") for p in case["options"].split(",") if p)}
        r = torch.tensor(vectors["reward"]).requires_grad_()
        of_row = torch.tensor([rows[i] if case in vectors["row_cases"] else 0.0 for i in pairs])
        loss = trl_loss(r[best], r[other], of_row + o.get("margin", 0), o.get("center_coef"))
        # TRL averages over pairs; here each response has the weight 1/n.
        (loss * len(pairs) * 2 / len(group)).backward()
        ours = torch.tensor(case["d"])
        off = (r.grad - ours)[best + other].abs().max().item()
        print(f"{case['name']}: {len(pairs)} pairs, off by {off:.1e}")
        worst, cases = max(worst, off), cases + 1
    print(f"{cases} cases, largest difference {worst:.1e}")
    sys.exit(not (cases >= 6 and len(pairs) >= 3 and worst < 1e-9))


main()
