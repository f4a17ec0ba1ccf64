#!/usr/bin/env python3
"""Compares the loss of grpo.so's first update with that of TRL's GRPO trainer on the same rows, including
masked responses (mask_truncated_completions) and rows of several turns (tool_mask).

Usage: grpo_loss.py RUN...

Each RUN has rollouts.jsonl, one minibatch per phase, and neither KL nor entropy in the loss. In the first update the policy
is the one that sampled, so the recorded log-probs are those of the policy. TRL's method gets them instead of a model's
outputs and is otherwise unchanged.
"""
import json
import os
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from trl import GRPOTrainer


class One:
    """Replaces accelerate's Accelerator with a single process."""

    num_processes, sync_gradients = 1, True

    def gather(self, x):
        return x

    def reduce(self, x, reduction="sum"):
        return x


def trainer(o, longest):
    high = o["clip_range"] if o["clip_range_high"] < 0 else o["clip_range_high"]
    cispo = o["loss"] == "cispo"
    args = SimpleNamespace(delta=o["dual_clip"] or None, steps_per_generation=1,
                           use_bias_correction_kl=False)
    return SimpleNamespace(
        args=args, accelerator=One(), model=SimpleNamespace(training=True),
        _metrics={"train": defaultdict(list)}, loss_type=o["loss"], beta=0.0,
        epsilon_low=o["clip_range"], epsilon_high=1 + high if cispo else high,
        importance_sampling_level="token", max_completion_length=longest,
        current_gradient_accumulation_steps=1, top_entropy_quantile=1.0, aux_loss_enabled=False,
        off_policy_mask_threshold=None, use_vllm=False, vllm_importance_sampling_correction=False,
        _entropy_bonus_enabled=False, use_adaptive_entropy=False)


def authors(r):
    """1 for each token after the prompt that the policy wrote, 0 for one of the environment."""
    turns = r.get("segments", [["policy", len(r["logp_old"])]])
    return [int(by == "policy") for by, n in turns for _ in range(n)]


def padded(rows, key, width):
    """The numbers of the policy's tokens in their places; elsewhere -1.5, which the masks must leave out."""
    out = torch.full((len(rows), width), -1.5, dtype=torch.float64)
    for i, r in enumerate(rows):
        at = [t for t, own in enumerate(authors(r)) if own]
        out[i, at] = torch.tensor(r[key], dtype=torch.float64)
    return out


def loss_of(o, rows, longest):
    width = max(len(authors(r)) for r in rows)
    logp = padded(rows, "logp_old", width)
    mask, own = torch.zeros_like(logp), torch.ones_like(logp)
    for i, r in enumerate(rows):
        counts = r["finished"] or not o["mask_truncated"]
        mask[i, : len(authors(r))] = float(counts)
        own[i, : len(authors(r))] = torch.tensor(authors(r), dtype=torch.float64)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    t = trainer(o, longest)
    t._get_per_token_logps_and_entropies = lambda *a, **k: (logp, torch.zeros_like(logp), None)
    inputs = dict(prompt_ids=ids[:, :1], prompt_mask=ids[:, :1] + 1, completion_ids=ids,
                  completion_mask=mask, tool_mask=own, num_items_in_batch=(mask * own).sum(),
                  advantages=torch.tensor([r["advantage"][0] for r in rows], dtype=torch.float64))
    return GRPOTrainer._compute_loss(t, None, inputs).item()


def check(run):
    with open(os.path.join(run, "config.json")) as f:
        config = json.load(f)
    with open(os.path.join(run, "rollouts.jsonl")) as f:
        lines = [v for v in map(json.loads, f) if v["phase"] == 1]
    rows = [v for v in lines if "row" in v]
    update = next(v for v in lines if "row" not in v)
    o, longest = config["algo"], config["sampling"]["max_new_tokens"]
    episodes = any("segments" in r for r in rows)
    if episodes:  # the longest that a row's own tokens can be
        longest = min(longest * config["episodes"]["turns"], config["episodes"]["tokens"] or 1 << 30)
    if o["minibatches"] != 1 or o["entropy_coef"] or o["kl_placement"] == "loss":
        raise SystemExit(f"{run}: not one minibatch of the surrogate alone")
    masked = sum(not r["finished"] for r in rows) if o["mask_truncated"] else 0
    theirs = loss_of(o, rows, longest)
    bad = abs(theirs - update["loss"]) > 1e-6 * (1 + abs(theirs))
    given = sum(len(authors(r)) - sum(authors(r)) for r in rows)
    bad |= given == 0 and run.endswith("-turns")
    print(f"{run}: {o['loss']}, {given} tokens of the environment, {masked} of {len(rows)} rows masked: loss {update['loss']:.9g}, "
          f"TRL {theirs:.9g}{'   WRONG' if bad else ''}")
    return bad or (o["mask_truncated"] and not episodes and not 0 < masked < len(rows))


if __name__ == "__main__":
    sys.exit(max([int(check(run)) for run in sys.argv[1:]]))
