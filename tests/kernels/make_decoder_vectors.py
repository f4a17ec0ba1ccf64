#!/usr/bin/env python3
"""Writes decoder_vectors.json: RMS norms, gated units and rotary positions, and their gradients by
torch's autograd in float64.

Usage: make_decoder_vectors.py > decoder_vectors.json   (needs torch and transformers)

Both sides compute the inputs by the formula input(tag, i); only results are stored. The rotation is
that of transformers' Qwen3, which rotates queries and keys after a norm of each head, and that of
its Phi-3, which rotates the first PART elements of each head.
"""
import json

import numpy as np
import torch
import torch.nn.functional as F
from transformers.models.phi3.modeling_phi3 import apply_rotary_pos_emb as rotate_part
from transformers.models.qwen3.modeling_qwen3 import apply_rotary_pos_emb

ROWS, D, INNER = 3, 10, 6
HEADS, KV_HEADS, DIM, N_POS, PART = 4, 2, 8, 12, 6
POS = [0, 5, 11]
EPS = 0.0625


def inputs(tag, *shape):
    n = int(np.prod(shape))
    i = np.arange(n, dtype=np.int64)
    x = (((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0).astype(np.float32)
    return torch.tensor(x.astype(np.float64)).reshape(shape)


def rms(offset):
    x = (3 * inputs(1, ROWS, D)).requires_grad_()
    gamma = inputs(2, D).requires_grad_()
    out = F.rms_norm(x, (D,), offset + gamma, EPS)
    out.backward(inputs(3, ROWS, D))
    return out, x.grad, gamma.grad


def gated(f):
    x = (3 * inputs(1, ROWS, 2 * INNER)).requires_grad_()
    out = f(x[:, :INNER]) * x[:, INNER:]
    out.backward(inputs(3, ROWS, INNER))
    return out, x.grad


def silu():
    x = (9 * inputs(1, ROWS, D)).requires_grad_()
    out = F.silu(x)
    out.backward(inputs(3, ROWS, D))
    return out, x.grad


def table(dim=DIM):
    """cosines and sines as the op reads them, rounded to f32 once."""
    half = dim // 2
    angle = np.arange(N_POS)[:, None] * 100.0 ** -(np.arange(half)[None, :] / half)
    return torch.tensor(np.concatenate([np.cos(angle), np.sin(angle)], 1).astype(np.float32).astype(np.float64))


def turned(q, k, dim):
    t = table(dim)[POS]
    cos, sin = t[:, : dim // 2].repeat(1, 2)[None], t[:, dim // 2 :].repeat(1, 2)[None]
    rotate = apply_rotary_pos_emb if dim == DIM else rotate_part
    q, k = rotate(q.transpose(0, 1)[None], k.transpose(0, 1)[None], cos, sin)
    return torch.cat([q, k], 1)[0].transpose(0, 1)


def rope(norms, offset=0, dim=DIM):
    x = (2 * inputs(1, ROWS, HEADS + KV_HEADS, DIM)).requires_grad_()
    gamma = [inputs(2, DIM).requires_grad_(), inputs(4, DIM).requires_grad_()]
    q, k = x[:, :HEADS], x[:, HEADS:]
    if norms:
        q = F.rms_norm(q, (DIM,), offset + gamma[0], EPS)
        k = F.rms_norm(k, (DIM,), offset + gamma[1], EPS)
    out = turned(q, k, dim)
    out.backward(inputs(3, ROWS, HEADS + KV_HEADS, DIM))
    return (out, x.grad, gamma[0].grad, gamma[1].grad) if norms else (out, x.grad)


def whole_rope():
    """As OLMo 2: one norm of all queries of a row, and one of all its keys."""
    x = (2 * inputs(1, ROWS, HEADS + KV_HEADS, DIM)).requires_grad_()
    width = [HEADS * DIM, KV_HEADS * DIM]
    gamma = [inputs(2, width[0]).requires_grad_(), inputs(4, width[1]).requires_grad_()]
    q, k = x[:, :HEADS].flatten(1), x[:, HEADS:].flatten(1)
    q, k = (F.rms_norm(y, (y.shape[-1],), g, EPS).view(ROWS, -1, DIM) for y, g in ((q, gamma[0]), (k, gamma[1])))
    out = turned(q, k, DIM)
    out.backward(inputs(3, ROWS, HEADS + KV_HEADS, DIM))
    return out, x.grad, gamma[0].grad, gamma[1].grad


def main():
    out = {"torch": torch.__version__.split("+")[0], "eps": EPS, "pos": POS}

    def array(name, x):
        out[name] = [float(f"{e:.9e}") for e in x.detach().reshape(-1).tolist()]

    array("turn", table())
    for offset, prefix in ((0, "rms_"), (1, "rms_one_")):
        for name, x in zip(("out", "dx", "dgamma"), rms(offset)):
            array(prefix + name, x)
    for name, x in zip(("out", "dx"), silu()):
        array("silu_" + name, x)
    kinds = [
        ("gelu_tanh", lambda v: F.gelu(v, approximate="tanh")),
        ("gelu_erf", F.gelu),
        ("relu", F.relu),
        ("silu", F.silu),
        ("relu2", lambda v: F.relu(v) ** 2),
    ]
    for kind, f in kinds:
        for name, x in zip(("out", "dx"), gated(f)):
            array(f"gate_{kind}_{name}", x)
    for name, x in zip(("out", "dx"), rope(False)):
        array("rope_" + name, x)
    for name, x in zip(("out", "dx", "dgamma_q", "dgamma_k"), rope(True)):
        array("norm_rope_" + name, x)
    for name, x in zip(("out", "dx", "dgamma_q", "dgamma_k"), rope(True, 1)):
        array("one_rope_" + name, x)
    array("part_turn", table(PART))
    for name, x in zip(("out", "dx"), rope(False, dim=PART)):
        array("part_rope_" + name, x)
    for name, x in zip(("out", "dx", "dgamma_q", "dgamma_k"), rope(True, 1, PART)):
        array("part_norm_rope_" + name, x)
    for name, x in zip(("out", "dx", "dgamma_q", "dgamma_k"), whole_rope()):
        array("whole_rope_" + name, x)
    print("{" + ",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "}")


if __name__ == "__main__":
    main()
