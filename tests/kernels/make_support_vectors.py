#!/usr/bin/env python3
"""Writes support_vectors.json: log-probs, entropy, KL and their gradients over a given support, by torch's
autograd in float64, and the ids that top-k and top-p keep.

Usage: make_support_vectors.py > support_vectors.json   (needs torch and numpy)

Both sides compute the inputs by the formula input(tag, i), so only results are stored. The inputs are
  hidden states  [ROWS, D]   1.5 input(1, i); of the reference 1.5 input(3, i)
  weight         [VOCAB, D]  input(2, i); of the reference input(2, i) + 0.2 input(4, i)
  derivatives of the loss    input(5 .. 7, row)
"""
import json

import numpy as np
import torch

ROWS, D, VOCAB = 5, 6, 40
WORDS = (VOCAB + 31) // 32


def inputs(tag, *shape):
    n = int(np.prod(shape))
    i = np.arange(n, dtype=np.int64)
    x = (((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0).astype(np.float32)
    return torch.tensor(x.astype(np.float64)).reshape(shape)


def kept(logits, top_k, top_p):
    """ids of one row: top-k of the logits, then the shortest prefix with probability >= top_p."""
    order = sorted(range(VOCAB), key=lambda v: (-logits[v], v))
    if top_k:
        order = order[:top_k]
    p = np.exp(logits[order] - logits[order[0]])
    p /= p.sum()
    total, n = 0.0, 0
    while n < len(order) and total < top_p:
        total += p[n]
        n += 1
    return sorted(order[:n]) if top_p < 1 else sorted(order)


def case(sample_t, score_t, top_k, top_p):
    h = (1.5 * inputs(1, ROWS, D)).requires_grad_()
    w = inputs(2, VOCAB, D).requires_grad_()
    ref = 1.5 * inputs(3, ROWS, D) @ (inputs(2, VOCAB, D) + 0.2 * inputs(4, VOCAB, D)).T
    logits = h @ w.T
    sets = [kept(row.detach().numpy() / sample_t, top_k, top_p) for row in logits]
    target = [s[(3 * i + 1) % len(s)] for i, s in enumerate(sets)]
    logp, entropy, kl = [], [], []
    for i, s in enumerate(sets):
        a = torch.log_softmax(logits[i, s] / score_t, 0)
        q = torch.log_softmax(ref[i, s] / score_t, 0)
        logp.append(a[s.index(target[i])])
        entropy.append(-(a.exp() * a).sum())
        kl.append((a.exp() * (a - q)).sum())
    heads = [torch.stack(x) for x in (logp, entropy, kl)]
    sum(((inputs(5 + k, ROWS) * x).sum() for k, x in enumerate(heads))).backward()
    bits = [sum(1 << (v - 32 * j) for v in s if v // 32 == j) for s in sets for j in range(WORDS)]
    return bits, target, heads, h.grad, w.grad


def main():
    cases = []
    short = lambda x: [float(f"{v:.9e}") for v in x.reshape(-1).tolist()]
    for sample_t, score_t, top_k, top_p in [
        (1.0, 1.0, 7, 1.0),
        (0.8, 0.8, 0, 0.7),
        (1.6, 1.0, 0, 0.9),
        (1.0, 1.0, 20, 0.85),
        (1.0, 2.0, 1, 1.0),
        (1.3, 1.3, 0, 1.0),
    ]:
        bits, target, (logp, entropy, kl), dh, dw = case(sample_t, score_t, top_k, top_p)
        cases.append({"inv_temperature": 1 / sample_t, "top_p": top_p, "top_k": top_k,
                      "scored_inv_temperature": 1 / score_t, "support": bits, "target": target, "logp": short(logp),
                      "entropy": short(entropy), "kl": short(kl), "d_hidden": short(dh), "d_weight": short(dw)})
    lines = ",\n  ".join(json.dumps(c) for c in cases)
    print(f'{{"torch": "{torch.__version__.split("+")[0]}",\n "cases": [\n  {lines}]}}')


if __name__ == "__main__":
    main()
