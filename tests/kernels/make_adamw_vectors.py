#!/usr/bin/env python3
"""Writes optimiser_vectors.h: results of torch.optim.AdamW and float64 NumPy for the same numbers.

Usage: make_adamw_vectors.py > optimiser_vectors.h   (needs torch and numpy)

Both sides compute the inputs by the formula input(tag, i), so only results are stored:
  adamw   N weights, STEPS steps with gradient input(100 + step, i). Results of torch (float32) and of the
          TensorFlow 1 form (float64)
  muon    one step (float64) for several shapes, with and without Nesterov momentum, stored [out, in] and
          [in, out]. Of the larger shapes, only every stride-th weight
"""
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


def array(values, per_line=4):
    lines = []
    for i in range(0, len(values), per_line):
        lines.append("     " + ", ".join(f"{float(v):.9e}" for v in values[i : i + per_line]) + ",")
    return "{\n" + "\n".join(lines) + "\n     }"


def main():
    print("// optimiser_vectors.h: made by make_adamw_vectors.py, with torch", end=" ")
    print(torch.__version__.split("+")[0] + ". Do not edit.")
    print("// clang-format off")
    print(f"enum {{ ADAMW_N = {N}, ADAMW_STEPS = {STEPS}, MUON_MAX = 64 }};")
    print("static const struct {\n    rlhf_adamw how;\n    double w[ADAMW_N], m[ADAMW_N], v[ADAMW_N];")
    print("} adamw_vectors[] = {")
    configs = [
        (1e-3, 0.9, 0.999, 1e-8, 0.01, 1.0, 0),
        (3e-2, 0.9, 0.95, 1e-8, 0.1, 0.25, 0),
        (1e-2, 0.8, 0.99, 1e-3, 0.0, 1.0, 0),
        (1e-3, 0.9, 0.999, 1e-5, 0.0, 1.0, 1),
        (2e-2, 0.9, 0.999, 1e-5, 0.05, 0.5, 1),
    ]
    for lr, b1, b2, eps, wd, scale, tf1 in configs:
        w, m, v = (adamw_tf1 if tf1 else adamw_torch)(lr, b1, b2, eps, wd, scale)
        print(f"    {{{{sizeof(rlhf_adamw), {tf1}, {lr}, {b1}, {b2}, {eps}, {wd}, {scale}, 1}},")
        print(f"     {array(w)}, {array(m)}, {array(v)}}},")
    print("};")
    print("static const struct {\n    int32_t rows, cols, stride, n;\n    rlhf_muon how;")
    print("    double w[MUON_MAX], mom[MUON_MAX];\n} muon_vectors[] = {")
    for rows, cols, stride, nesterov, wd, scale, in_out in [
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
    ]:
        w, mom = muon(rows, cols, 0.02, 0.95, wd, scale, nesterov, 5, in_out)
        w, mom = w[::stride][:64], mom[::stride][:64]
        print(f"    {{{rows}, {cols}, {stride}, {len(w)}, {{sizeof(rlhf_muon), {nesterov}, 5, {in_out}, 0.02, 0.95, {wd}, {scale}}},")
        print(f"     {array(w)}, {array(mom)}}},")
    print("};\n// clang-format on")


if __name__ == "__main__":
    main()
