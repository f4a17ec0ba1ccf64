#!/usr/bin/env python3
"""Compares the kl head, with a wider teacher, with TRL's generalized_jsd_loss (GKDTrainer) in float64.

    jsd.py DIR HEADS     HEADS: tests/oracle/heads.c

transformers writes a small student and a teacher of another width and depth, both with random weights. The script
compares the mean divergence over the tokens (TRL's loss), each token's divergence, and the gradients of the loss with
respect to every parameter of the student. These gradients are linear in those with respect to the student's logits. In
TRL, beta 0 is KL(teacher || student) and beta 1 is KL(student || teacher).
"""
import sys

import torch
import transformers as hf
from trl.experimental.gkd import GKDTrainer

from families import config, fill, heads, load, rows_of, tokenizer

CASES = [("reverse", 0, 0.0, 1), ("forward", 1, 0.0, 0), ("js", 2, 0.5, 0.5), ("js", 2, 0.1, 0.1),
         ("js", 2, 0.9, 0.9)]  # name, enum rlhf_divergence, our beta, TRL's beta
LIMITS = {"loss": 2e-6, "divergence of a token": 2e-5, "1 - cosine of a gradient": 1e-6,
          "norm ratio of a gradient - 1": 2e-5}  # f32 against float64; the first two relative


def make(root):
    student = dict(num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=8, tie_word_embeddings=True)
    for name, more, seed in (("student", student, 1), ("teacher", dict(tie_word_embeddings=False), 2)):
        fill(hf.AutoModelForCausalLM.from_config(config(hf.Qwen3Config, **more)), seed).save_pretrained(f"{root}/{name}")
        tokenizer().save_pretrained(f"{root}/{name}")


def logits(model, row):
    return model(input_ids=torch.tensor([row])).logits[0, :-1].unsqueeze(0)


def theirs(student, teacher, rows, beta):
    """TRL's loss, each token's divergence, and the gradients."""
    student.zero_grad()
    n = sum(len(r) - 1 for r in rows)
    loss, each = 0, []
    for row in rows:
        with torch.no_grad():
            other = logits(teacher, row)
        own, labels = logits(student, row), torch.tensor([row[1:]])
        loss = loss + GKDTrainer.generalized_jsd_loss(own, other, labels, beta=beta, num_items_in_batch=n)
        each += [0.0] + GKDTrainer.generalized_jsd_loss(own, other, beta=beta, reduction="none")[0].sum(-1).tolist()
    loss.backward()
    return loss.item(), torch.tensor(each), {k: p.grad.reshape(-1).clone() for k, p in student.named_parameters()}


def compare(name, beta, ours, want):
    loss, each, grads = want
    kl = ours["kl"]
    n = int((each != 0).sum())
    off = {"loss": abs(kl.sum().item() / n - loss) / loss,
           "divergence of a token": ((kl - each).abs().max() / each.abs().max()).item()}
    cosine, ratio = 0.0, 0.0
    for key, w in grads.items():
        g = ours["grad:" + key]
        cosine = max(cosine, 1 - (torch.dot(g, w) / (g.norm() * w.norm())).item())
        ratio = max(ratio, abs((g.norm() / w.norm()).item() - 1))
    off["1 - cosine of a gradient"], off["norm ratio of a gradient - 1"] = cosine, ratio
    bad = 0
    for what, x in off.items():
        wrong = not x <= LIMITS[what]
        bad += wrong
        print(f"{name} {beta:<4} {what:<30} {x:9.2e}   limit {LIMITS[what]:.0e}{'   WRONG' if wrong else ''}", flush=True)
    return bad


def main():
    root, program = sys.argv[1:]
    make(root)
    student, teacher = (load(f"{root}/{m}", torch.float64) for m in ("student", "teacher"))
    torch.set_default_dtype(torch.float64)
    rows, bad = rows_of(3, 6, 40), 0
    n = sum(len(r) - 1 for r in rows)
    weight = [0.0 if t == 0 else 1 / n for r in rows for t in range(len(r))]
    for name, divergence, beta, theirs_beta in CASES:
        ours = heads(program, f"{root}/student", "f32", rows, weight, f"{root}/teacher", str(divergence), str(beta))
        bad += compare(name, beta, ours, theirs(student, teacher, rows, theirs_beta))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
