#!/usr/bin/env python3
"""Writes attention_vectors.json: attention with a sliding window and capped scores, and its gradients
by torch's autograd in float64.

Usage: make_attention_vectors.py > attention_vectors.json   (needs torch and transformers)

Both sides compute the inputs by the formula input(tag, i); only results are stored. The keys that a
query sees are those of transformers' mask of Mistral, and the arithmetic is its attention of Gemma 2.
"""
import json
import types

import numpy as np
import torch
from transformers.masking_utils import sliding_window_causal_mask_function
from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward

TOKENS, HEADS, KV_HEADS, DIM = 17, 4, 2, 8
SCALE = 0.5
CASES = [("plain", 0, 0.0), ("window", 5, 0.0), ("cap", 0, 1.25), ("both", 3, 0.75)]


def inputs(tag, *shape):
    n = int(np.prod(shape))
    i = np.arange(n, dtype=np.int64)
    x = (((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0).astype(np.float32)
    return torch.tensor(x.astype(np.float64)).reshape(shape)


def mask(window):
    """0 for the keys that a query sees, otherwise -inf."""
    sees = sliding_window_causal_mask_function(window or TOKENS)
    at = torch.arange(TOKENS)
    seen = [[bool(sees(0, 0, at[q], at[k])) for k in range(TOKENS)] for q in range(TOKENS)]
    return torch.where(torch.tensor(seen), 0.0, -torch.inf).to(torch.float64)


def attend(window, cap):
    x = [(2 * inputs(tag, TOKENS, n, DIM)).requires_grad_() for tag, n in ((1, HEADS), (2, KV_HEADS), (3, KV_HEADS))]
    q, k, v = (t.transpose(0, 1)[None] for t in x)
    module = types.SimpleNamespace(num_key_value_groups=HEADS // KV_HEADS, training=False, head_dim=DIM)
    # softmax in float64: transformers' function computes it in float32
    softmax = torch.nn.functional.softmax
    torch.nn.functional.softmax = lambda s, dim, dtype=None: softmax(s, dim=dim)
    out, _ = eager_attention_forward(module, q, k, v, mask(window)[None, None], scaling=SCALE, softcap=cap or None)
    torch.nn.functional.softmax = softmax
    out = out[0]
    out.backward(inputs(4, TOKENS, HEADS, DIM))
    return out, *(t.grad for t in x)


def main():
    out = {"torch": torch.__version__.split("+")[0], "scale": SCALE}
    for name, window, cap in CASES:
        out[name + "_window"], out[name + "_cap"] = window, cap
        for what, x in zip(("out", "dq", "dk", "dv"), attend(window, cap)):
            out[f"{name}_{what}"] = [float(f"{e:.9e}") for e in x.detach().reshape(-1).tolist()]
    print("{" + ",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "}")


if __name__ == "__main__":
    main()
