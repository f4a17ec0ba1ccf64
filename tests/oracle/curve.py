#!/usr/bin/env python3
"""Compares the loss curve of sft.so with PyTorch's, over 100 steps of AdamW on four texts.

    curve.py DIR RUN    DIR: a directory of families.py; RUN: the run that curve.sh made from it

Needs torch, transformers and tokenizers. PyTorch trains in float32 on ids from the tokenizer of the directory, with
torch.optim.AdamW, weight decay on matrices and convolutions, and clipping by the global norm. Models with layers that have a
state are trained in float64: in float32, PyTorch's own last steps are off by more than the limit in one of them.
"""
import json
import os
import sys

import torch
import transformers as hf

import families

STEPS, LIMIT = 100, 1e-4  # largest difference of a loss, relative to 1 + |loss|
# At higher rates the last steps amplify rounding: PyTorch in float32 then also diverges from float64.
TEXTS = ["It was late, and the road went on.", "Nobody in the house had seen the letter.", "Seven!",
         "The tide turned before the boats were in, so they waited."]


def curve(directory):
    name = os.path.basename(directory)
    if families.has_state(name):
        return families.Judge(name, directory)(train, directory)
    return train(families.load(directory, torch.float32), directory)


def train(model, directory):
    tok = hf.AutoTokenizer.from_pretrained(directory)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optim = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                              lr=1e-4, betas=(0.9, 0.95), eps=1e-5)
    rows = [[1] + tok(t, add_special_tokens=False).input_ids + [2] for t in TEXTS]
    losses = []
    for _ in range(STEPS):
        total, n = 0.0, sum(len(r) - 1 for r in rows)
        for r in rows:
            logp = torch.log_softmax(model(input_ids=torch.tensor([r])).logits[0], -1)
            total = total - logp[torch.arange(len(r) - 1), r[1:]].sum()
        loss = total / n
        losses.append(loss.item())
        optim.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
    return losses


def main():
    torch.set_num_threads(1)
    hf.logging.set_verbosity_error()
    want = curve(sys.argv[1])
    with open(f"{sys.argv[2]}/metrics.jsonl") as f:
        got = [m["objective/loss"] for m in map(json.loads, f) if "objective/loss" in m]
    if len(got) != STEPS:
        sys.exit(f"{sys.argv[2]}: {len(got)} losses, {STEPS} steps")
    worst = max(abs(a - b) / (1 + abs(b)) for a, b in zip(got, want))
    wrong = not worst <= LIMIT
    print(f"{sys.argv[1]}: loss {want[0]:.4f} to {want[-1]:.4f}, apart by {worst:.1e}   limit {LIMIT:.0e}"
          f"{'   WRONG' if wrong else ''}")
    sys.exit(int(wrong))


if __name__ == "__main__":
    if sys.argv[1:] == ["rows"]:
        print("\n".join(json.dumps({"text": t}) for t in TEXTS))
    else:
        main()
