#!/usr/bin/env python3
"""Writes a GPT-2 of 2 x 32 without weights: config.json and a vocabulary of bytes.

Usage: tiny_model.py DIR
"""
import json
import os
import sys

os.makedirs(sys.argv[1])
os.chdir(sys.argv[1])
plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
other = [b for b in range(256) if b not in plain]
vocab = {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(other)}
with open("vocab.json", "w") as f:
    json.dump(vocab | {"th": 256, "<|endoftext|>": 257}, f)
with open("merges.txt", "w") as f:
    f.write("#version: 0.2\nt h\n")
with open("config.json", "w") as f:
    json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 258,
               "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2,
               "layer_norm_epsilon": 1e-5, "initializer_range": 0.02,
               "activation_function": "gelu_new", "bos_token_id": 257, "eos_token_id": 257}, f)
