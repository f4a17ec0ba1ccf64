#!/usr/bin/env python3
"""Compares what `gguf_values` (gguf_values.c) reads from GGUF files with the model to which transformers converts the
same file: every number of every tensor to the bit, names, shapes, and the fields of the config that both have. `heads`
(heads.c) gives the same bits for the file and for the directory of the converted model, and log-probs near those of
transformers.

Usage: gguf_files.py GGUF_VALUES HEADS FILE.gguf...       FILEs are published files, which are never committed

Prints a line for each file. Exit status 1: something differs.
"""
import contextlib
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile

import torch
import transformers as hf
from safetensors.torch import save_file

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


def log_probs(path):
    """The first record of heads.c."""
    data = open(path, "rb").read()
    n, = struct.unpack_from("<I", data)
    count, = struct.unpack_from("<I", data, 4 + n)
    return torch.tensor(struct.unpack_from(f"<{count}f", data, 8 + n))


def save(model, to):
    """As save_pretrained, which refuses a model that was quantised."""
    tied = model.config.tie_word_embeddings
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.config.save_pretrained(to)
    save_file({k: t.contiguous() for k, t in model.state_dict().items() if not tied or k != "lm_head.weight"},
              f"{to}/model.safetensors", {"format": "pt"})


def check_heads(heads, path, model, tokenizer):
    """What differs, and the largest difference of a log-prob from transformers'."""
    rows = torch.randint(0, model.config.vocab_size, (2, 40), generator=torch.Generator().manual_seed(54))
    with torch.no_grad():
        logits = model(rows).logits.double().log_softmax(-1)
    want = torch.zeros(rows.shape, dtype=torch.float64)
    want[:, 1:] = logits[:, :-1].gather(2, rows[:, 1:, None])[:, :, 0]
    with tempfile.TemporaryDirectory() as tmp:
        save(model, f"{tmp}/model")
        tokenizer.save_pretrained(f"{tmp}/model")
        with open(f"{tmp}/rows", "w") as f:
            json.dump({"rows": rows.tolist(), "weight": [0.0] * rows.numel()}, f)
        for what in (path, f"{tmp}/model"):
            subprocess.run([heads, what, "f32", f"{tmp}/rows", f"{tmp}/{'b' if what == path else 'a'}"], check=True)
        same = open(f"{tmp}/a", "rb").read() == open(f"{tmp}/b", "rb").read()
        return [] if same else ["log-probs of the file and of the directory"], \
            (log_probs(f"{tmp}/a").double() - want.flatten()).abs().max().item()


def check(program, heads, path):
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
    tokenizer = hf.AutoTokenizer.from_pretrained(folder or ".", gguf_file=name)
    differs, far = check_heads(heads, path, model, tokenizer)
    wrong += differs + ([f"log-probs by {far:.2g}"] if far > 1e-3 else [])
    numbers = sum(t.numel() for t in model.state_dict().values())
    print(f"{name}: {len(ours)} tensors, {numbers} numbers, {len(both)} fields, log-probs within {far:.1g}: "
          + ("the same" if not wrong else "DIFFERENT: " + "; ".join(wrong[:9])))
    return not wrong


sys.exit(not all([check(*sys.argv[1:3], path) for path in sys.argv[3:]]))
