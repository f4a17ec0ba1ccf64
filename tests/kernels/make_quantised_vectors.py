#!/usr/bin/env python3
"""Writes quantised_vectors.json for test_quantised: random blocks of every format that a weight may keep, and the
bits of the numbers that the Python package gguf makes from them.

Needs numpy and gguf. Usage, in this directory: python3 make_quantised_vectors.py > quantised_vectors.json
"""
import json

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

# name, number in enum rlhf_format, the offsets of the f16 numbers in a block
FORMATS = [(T.Q8_0, 1, [0]), (T.Q4_0, 2, [0]), (T.Q4_1, 3, [0, 2]), (T.Q4_K, 4, [0, 2]), (T.Q6_K, 5, [208]),
           (T.Q5_0, 6, [0]), (T.Q5_1, 7, [0, 2])]
# scales of the blocks: usual, negative, denormal, 0, large
SCALES = [0.0123, -0.37, 3e-7, 0.0, 61.5]


def case(rng, kind, number, halves):
    elements, size = GGML_QUANT_SIZES[kind]
    scales = SCALES if elements < 256 else SCALES[:3]
    blocks = rng.integers(0, 256, (len(scales), size), dtype=np.uint8)
    for block, scale in zip(blocks, scales):
        for i, at in enumerate(halves):
            block[at:at + 2] = np.array([scale * (1 - 0.7 * i)], dtype=np.float16).view(np.uint8)
    values = quants.dequantize(blocks.reshape(1, -1), kind).astype(np.float32)
    return {"format": number, "elements": values.size, "size": blocks.size,
            "blocks": blocks.reshape(-1).tolist(), "bits": values.reshape(-1).view(np.uint32).tolist()}


def main():
    rng = np.random.default_rng(54)
    print("{\"cases\": [")
    print(",\n".join(json.dumps(case(rng, *f), separators=(",", ":")) for f in FORMATS))
    print("]}")


main()
