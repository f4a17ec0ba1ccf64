#!/usr/bin/env python3
"""Writes optimizer_vectors.json: results of torch.optim.AdamW and float64 NumPy for the same numbers.

Usage: make_adamw_vectors.py > optimizer_vectors.json   (needs torch and numpy)

Both sides compute the inputs by the formula input(tag, i), so only results are stored:
  adamw   N weights, STEPS steps with gradient input(100 + step, i). Results of torch (float32) and of the
          TensorFlow 1 form (float64)
  muon    one step (float64) for several shapes, with and without Nesterov momentum, stored [out, in] and
          [in, out]. Of the larger shapes, only every stride-th weight
"""
import json

import numpy as np
import torch

N, STEPS = 11, 6


def inputs(tag, n):
    i = np.arange(n, dtype=np.int64)
    return (((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0).astype(np.float32)


def adamw_torch(lr, b1, b2, eps, wd, scale):
    w = torch.nn.Parameter(torch.tensor(inputs(1, N)))
    opt = torch.optim.AdamW([w], lr=lr, betas=(b1, b2), eps=eps, weight_decay=wd, foreach=False)
    for step in range(1, STEPS + 1):
        w.grad = torch.tensor(inputs(100 + step, N)) * scale
        opt.step()
    state = opt.state[w]
    return w.detach().numpy(), state["exp_avg"].numpy(), state["exp_avg_sq"].numpy()


def adamw_tf1(lr, b1, b2, eps, wd, scale):
    w = inputs(1, N).astype(np.float64)
    m, v = np.zeros(N), np.zeros(N)
    for t in range(1, STEPS + 1):
        g = inputs(100 + t, N).astype(np.float64) * scale
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        w -= lr * wd * w
        w -= lr * np.sqrt(1 - b2**t) / (1 - b1**t) * m / (np.sqrt(v) + eps)
    return w, m, v


def muon(rows, cols, lr, momentum, wd, scale, nesterov, steps, in_out):
    shape = (rows, cols)
    w = inputs(2, rows * cols).astype(np.float64).reshape(shape)
    g = inputs(3, rows * cols).astype(np.float64).reshape(shape) * scale
    mom = momentum * inputs(4, rows * cols).astype(np.float64).reshape(shape) + g
    x = g + momentum * mom if nesterov else mom
    x = x / np.linalg.norm(x)
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    n_out, n_in = (cols, rows) if in_out else (rows, cols)
    w = w - lr * wd * w - lr * np.sqrt(max(1.0, n_out / n_in)) * x
    return w.ravel(), mom.ravel()


def short(values):
    return [float(f"{float(v):.9e}") for v in values]


def adamw_case(lr, b1, b2, eps, wd, scale, tf1):
    w, m, v = (adamw_tf1 if tf1 else adamw_torch)(lr, b1, b2, eps, wd, scale)
    return {"tf1": tf1, "lr": lr, "beta1": b1, "beta2": b2, "eps": eps, "weight_decay": wd, "grad_scale": scale,
            "w": short(w), "m": short(m), "v": short(v)}


def muon_case(rows, cols, stride, nesterov, wd, scale, in_out):
    w, mom = muon(rows, cols, 0.02, 0.95, wd, scale, nesterov, 5, in_out)
    return {"rows": rows, "cols": cols, "stride": stride, "nesterov": nesterov, "steps": 5, "in_out": in_out, "lr": 0.02,
            "momentum": 0.95, "weight_decay": wd, "grad_scale": scale, "w": short(w[::stride][:64]),
            "mom": short(mom[::stride][:64])}


def main():
    configs = [
        (1e-3, 0.9, 0.999, 1e-8, 0.01, 1.0, 0),
        (3e-2, 0.9, 0.95, 1e-8, 0.1, 0.25, 0),
        (1e-2, 0.8, 0.99, 1e-3, 0.0, 1.0, 0),
        (1e-3, 0.9, 0.999, 1e-5, 0.0, 1.0, 1),
        (2e-2, 0.9, 0.999, 1e-5, 0.05, 0.5, 1),
    ]
    shapes = [
        (5, 5, 1, 1, 0.0, 1.0, 0),
        (4, 9, 1, 0, 0.1, 0.5, 0),
        (9, 4, 1, 1, 0.1, 1.0, 0),
        (48, 16, 13, 1, 0.0, 1.0, 0),
        (33, 97, 101, 1, 0.01, 2.0, 0),
        (64, 192, 409, 1, 0.0, 1.0, 0),
        (5, 5, 1, 1, 0.0, 1.0, 1),
        (4, 9, 1, 0, 0.1, 0.5, 1),
        (9, 4, 1, 1, 0.1, 1.0, 1),
        (48, 16, 13, 1, 0.0, 1.0, 1),
        (64, 192, 409, 1, 0.0, 1.0, 1),
    ]
    lines = lambda cases: ",\n  ".join(json.dumps(c) for c in cases)
    print(f'{{"torch": "{torch.__version__.split("+")[0]}",\n "adamw": [')
    print(f'  {lines(adamw_case(*c) for c in configs)}],\n "muon": [\n  {lines(muon_case(*s) for s in shapes)}]}}')


if __name__ == "__main__":
    main()
