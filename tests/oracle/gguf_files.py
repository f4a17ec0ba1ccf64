#!/usr/bin/env python3
"""Compares what `gguf_values` (gguf_values.c) reads from GGUF files with the model to which transformers converts the
same file: every number of every tensor to the bit, names, shapes, and the fields of the config that both have.

Usage: gguf_files.py GGUF_VALUES FILE.gguf...       FILEs are published files or small ones, which are never committed

Prints a line for each file. Exit status 1: something differs.
"""
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys

import torch
import transformers as hf

# Fields that transformers fills with what it does not read from the file, or that say nothing of the arithmetic.
IGNORED = {"_name_or_path", "_model_name_or_path", "transformers_version", "dtype", "torch_dtype", "use_cache",
           "initializer_range", "attention_dropout", "pretraining_tp", "_sliding_window_pattern", "architectures"}


def close(a, b):
    """Numbers that f32 does not tell apart are the same: the file has them in f32."""
    if isinstance(a, float) or isinstance(b, float):
        return torch.tensor(a, dtype=torch.float32) == torch.tensor(b, dtype=torch.float32)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    return a == b


def check(program, path):
    out = subprocess.run([program, path], capture_output=True, text=True)
    if out.returncode:
        print(f"{path}: {out.stderr.strip()}")
        return False
    config, *lines = out.stdout.splitlines()
    ours, config = dict(line.split("\t", 1) for line in lines), json.loads(config)
    folder, name = os.path.split(path)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        model = hf.AutoModelForCausalLM.from_pretrained(folder or ".", gguf_file=name, dtype=torch.float32)
    wrong = []
    theirs = {}
    for key, t in model.state_dict().items():
        if key == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        digest = hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest()
        theirs[key] = f"[{', '.join(map(str, t.shape))}]\t{digest}"
    wrong += [f"tensor {k}" for k in sorted(ours.keys() | theirs.keys()) if ours.get(k) != theirs.get(k)]
    their_config = model.config.to_dict()
    both = (config.keys() & their_config.keys()) - IGNORED
    wrong += [f"{k}: {config[k]} and {their_config[k]}" for k in sorted(both) if not close(config[k], their_config[k])]
    print(f"{name}: {len(ours)} tensors, {sum(t.numel() for t in model.state_dict().values())} numbers, "
          f"{len(both)} fields of the config: {'the same' if not wrong else 'DIFFERENT: ' + '; '.join(wrong[:9])}")
    return not wrong


sys.exit(not all([check(sys.argv[1], path) for path in sys.argv[2:]]))
