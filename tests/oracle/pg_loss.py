#!/usr/bin/env python3
"""Checks the expectations of tests/algos/grpo_vectors.jsonl: compares them with the float64 losses of TRL's GRPO and
GMPO trainers for given log-probs and advantages.

Usage: pg_loss.py BATCH_VECTORS.JSON GRPO_VECTORS.JSONL

Reads the batch and, for the cases listed here, the advantages, the policy loss and its derivative with respect to the
log-probs (including a KL in the loss). Compares the loss and the derivative with those of _compute_loss, which gets the
log-probs instead of a model's outputs and is otherwise unchanged.
"""
import json
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from trl import GRPOTrainer
from trl.experimental.gmpo import GMPOTrainer

torch.set_default_dtype(torch.float64)
CASES = ["defaults", "bnpo", "dr_grpo", "clip_asymmetric", "gspo", "gmpo", "gmpo_tight", "sapo",
         "sapo_hard", "sapo_sequence_mean"]


class One:
    """Replaces accelerate's Accelerator with a single process."""

    num_processes, sync_gradients = 1, True

    def gather(self, x):
        return x

    def reduce(self, x, reduction="sum"):
        return x


def trainer(o, longest):
    loss = o.get("loss", "grpo")
    low = float(o.get("clip_range", 0.2))
    high = float(o.get("clip_range_high", -1))
    placed = o.get("kl_placement", "loss") == "loss"
    args = SimpleNamespace(delta=None, steps_per_generation=1, use_bias_correction_kl=False,
                           sapo_temperature_pos=float(o.get("sapo_temperature_pos", 1)),
                           sapo_temperature_neg=float(o.get("sapo_temperature_neg", 1.05)))
    return SimpleNamespace(
        args=args, accelerator=One(), model=SimpleNamespace(training=True),
        _metrics={"train": defaultdict(list)}, loss_type=loss,
        beta=float(o.get("kl_coef", 0.04)) if placed else 0.0, epsilon_low=low,
        epsilon_high=low if high < 0 else high,
        importance_sampling_level={"token": "token", "sequence_mean": "sequence"}[
            o.get("ratio", "token")],
        max_completion_length=longest, current_gradient_accumulation_steps=1,
        top_entropy_quantile=1.0, aux_loss_enabled=False, off_policy_mask_threshold=None,
        use_vllm=False, vllm_importance_sampling_correction=False, _entropy_bonus_enabled=False,
        use_adaptive_entropy=False)


def main():
    batch = json.load(open(sys.argv[1]))
    known = {c["name"]: c for c in map(json.loads, open(sys.argv[2]))}
    offset, prompt, longest = batch["offset"], batch["prompt_len"], batch["max_len"]
    spans = [(a + p, b) for a, b, p in zip(offset, offset[1:], prompt)]
    mask = torch.tensor([[float(t < b - a) for t in range(longest)] for a, b in spans])

    def pad(flat):
        return torch.tensor([[flat[a + t] if a + t < b else 0.0 for t in range(longest)]
                             for a, b in spans])

    # the test's numbers are floats
    single = lambda x: pad(torch.tensor(x, dtype=torch.float32).double().tolist())
    old, ref, worst = single(batch["old"]), single(batch["ref"]), 0
    for name in CASES:
        case = known[name]
        o = dict(p.split("=") for p in case["options"].split(",") if p)
        t, logp = trainer(o, longest), single(batch["logp"]).requires_grad_()
        t._get_per_token_logps_and_entropies = lambda *a, **k: (logp, torch.zeros_like(logp), None)
        ids = torch.zeros(len(spans), longest, dtype=torch.long)
        inputs = dict(prompt_ids=ids[:, :1], prompt_mask=ids[:, :1] + 1, completion_ids=ids,
                      completion_mask=mask, num_items_in_batch=mask.sum(), old_per_token_logps=old,
                      ref_per_token_logps=ref, advantages=single(case["advantage"])[:, 0])
        kind = GMPOTrainer if t.loss_type == "gmpo" else GRPOTrainer
        loss = kind._compute_loss(t, None, inputs)
        loss.backward()
        # without the entropy term, which TRL's call here lacks
        entropy = (float(o.get("entropy_coef", 0)) *
                   (pad(batch["entropy"]) * mask / mask.sum(1, keepdim=True)).sum(1).mean())
        off = max(abs(loss.item() - case["metrics"]["loss/total"] - float(entropy)),
                  ((logp.grad - pad(case["d_logp"])) * mask).abs().max().item())
        print(f"{name}: loss {loss.item():.12g}, off by {off:.1e}")
        worst = max(worst, off)
    print(f"{len(CASES)} cases, largest difference {worst:.1e}")
    sys.exit(not worst < 1e-8)


if __name__ == "__main__":
    main()
