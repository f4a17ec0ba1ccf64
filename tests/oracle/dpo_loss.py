#!/usr/bin/env python3
"""Checks the expectations of tests/algos/test_dpo.c: compares them with the float64 losses of TRL's DPO trainer for
given log-probs.

Usage: dpo_loss.py DPO_VECTORS.JSON

Reads the arrays and cases of the file and compares their losses and derivatives with those of
DPOTrainer._compute_loss, one pair at a time. TRL supports only rows of two responses, so a row of k responses becomes
k - 1 pairs that share the row's weight k / n. TRL's trainer of this version ignores label smoothing with loss sigmoid, so
only make_dpo_vectors.py checks that case. TRL's method gets the log-probs instead of a model's outputs and is otherwise
unchanged.
"""
import json
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from trl import DPOTrainer

torch.set_default_dtype(torch.float64)


class One:
    """Replaces accelerate's Accelerator with a single process."""

    device = torch.device("cpu")

    def gather_for_metrics(self, x):
        return x

    gather = gather_for_metrics


class Model(torch.nn.Module):
    """Returns given log-probs; the fused head omits a row's first token."""

    is_gradient_checkpointing = False

    def __init__(self, logp):
        super().__init__()
        self.logp = logp

    def forward(self, labels, **_):
        logp = (self.logp * (labels != -100))[:, 1:]
        still = logp.detach()
        return SimpleNamespace(log_probs=logp, entropy=still, mean_logits=still,
                               log_sum_sq_probs=still, is_top1=still.bool())


def pair_loss(o, x, f, prompt):
    """TRL's loss of one pair; x and f are [chosen, rejected], prompts included."""
    width = max(len(r) for r in x)
    pad = lambda rows: torch.stack([torch.nn.functional.pad(r, (0, width - len(r))) for r in rows])
    mask = torch.zeros(2, width, dtype=torch.long)
    for k in range(2):
        mask[k, prompt[k] : len(x[k])] = 1
    t = SimpleNamespace(
        model=Model(pad(x)), ref_model=Model(pad(f)), accelerator=One(), aux_loss_enabled=False,
        loss_types=[o["loss"]], loss_weights=[1.0], beta=o["beta"], use_weighting=False,
        label_smoothing=o["label_smoothing"], f_divergence_type="reverse_kl", ld_alpha=None,
        precompute_ref_logps=False, _tp_size=1, _total_train_tokens=0,
        args=SimpleNamespace(gradient_checkpointing_kwargs=None),
        _metrics={"train": defaultdict(list)})
    batch = {"input_ids": torch.zeros(2, width, dtype=torch.long),
             "attention_mask": torch.ones(2, width, dtype=torch.long), "completion_mask": mask}
    return DPOTrainer._compute_loss(t, t.model, batch, False)


def main():
    vectors = json.load(open(sys.argv[1]))
    offset, prompt, group, label = (vectors[name] for name in ("offset", "prompt_len", "group", "label"))
    ref = torch.tensor(vectors["ref"])
    rows, worst, cases = {}, 0, 0
    for i, g in enumerate(group):
        rows.setdefault(g, []).append(i)
    for case in vectors["cases"]:
        options, loss = case["options"], case["loss"]
        o = dict({"loss": "sigmoid", "beta": 0.1, "label_smoothing": 0.0},
                 **{k: v if k == "loss" else float(v)
                    for k, v in (p.split("=") for p in options.split(",") if p)})
        if o["loss"] == "sigmoid" and o["label_smoothing"]:
            continue
        logp = torch.tensor(vectors["logp"]).requires_grad_()
        total = 0
        for members in rows.values():
            best = next(i for i in members if label[i] == 1)
            for j in (j for j in members if j != best):
                cut = lambda v: [v[offset[i] : offset[i + 1]] for i in (best, j)]
                total = total + len(members) / len(group) / (len(members) - 1) * pair_loss(
                    o, cut(logp), cut(ref), [prompt[best], prompt[j]])
        total.backward()
        # The file's derivatives are central differences with a step of 1e-5: the rounding error of the loss, times 1e5.
        off = max((logp.grad - torch.tensor(case["d"])).abs().max().item() / 1e3,
                  abs(total.item() - loss)) / (1 + abs(total.item()))
        print(f"{options or 'defaults'}: loss {total.item():.15g}, off by {off:.1e}")
        worst, cases = max(worst, off), cases + 1
    print(f"{cases} cases, largest difference {worst:.1e}")
    sys.exit(not (cases >= 9 and worst < 1e-12))


main()
