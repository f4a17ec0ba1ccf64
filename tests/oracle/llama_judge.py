#!/usr/bin/env python3
"""Compares GGUF files in this program with llama.cpp, by the package llama-cpp-python. llama.cpp multiplies quantised
weights by activations of 8 bits, so the numbers are near each other, not equal.

Usage: llama_judge.py HOST HEADS WORK TEXT FILE.gguf...       FILEs are published files, which are never committed

HOST is the program, HEADS tests/oracle/heads.c, WORK an empty directory, TEXT a long text.
- Each FILE, and a q8_0 export of the first one: the perplexity of TEXT is within 1 %.
- The first FILE with an adapter, trained by the preset chat-lora and exported as a GGUF file: most of the greedy texts
  after 50 prompts are equal. As a comparison, the same without the adapter on llama.cpp's side: fewer are equal.
Prints a line for each. Exit status 1: something is not so.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys

import llama_cpp.llama_cpp as library
import numpy as np
from llama_cpp import Llama

WINDOW, WINDOWS, PROMPTS, NEW = 256, 12, 50, 24
TEXT = 40000  # characters
PLACES = ["Paris", "Rome", "Cairo", "Oslo", "Lima"]
QUESTIONS = ["Where is {}?", "What is {} known for?", "Name one river near {}.", "Is {} a large city?", "Which language do people speak in {}?"]
REWARD = '''import re


def right(completions, answer, **kwargs):
    return [1.0 if re.findall(r"\\d+", c[0]["content"])[-1:] == [a] else 0.0 for c, a in zip(completions, answer)]
'''


own_params = library.llama_model_default_params


def plain_params():
    """Without products for one CPU: those of AMX end 0.3.36 by an illegal instruction."""
    params = own_params()
    params.use_extra_bufts = False
    return params


library.llama_model_default_params = plain_params


def llama(path, n_ctx, **more):
    return Llama(model_path=path, n_ctx=n_ctx, n_batch=n_ctx, logits_all=True, verbose=False, seed=1, n_threads=1, n_threads_batch=1, **more)


def perplexity_of(log_probs):
    return math.exp(-float(np.mean(log_probs)))


def windows(model, text):
    """Pieces of WINDOW tokens. The first token of each is BOS if the model has one that it wants."""
    ids = model.tokenize(text.encode(), add_bos=False, special=False)
    first = [model.token_bos()] if model._model.add_bos_token() else []
    step = WINDOW - len(first)
    return [first + ids[i * step:(i + 1) * step] for i in range(WINDOWS) if len(ids) >= (i + 1) * step]


def theirs(model, rows):
    out = []
    for row in rows:
        model.reset()
        model.eval(row)
        z = model.scores[:len(row) - 1].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
        out.append(z[np.arange(len(row) - 1), row[1:]])
    return np.concatenate(out)


def ours(heads, path, rows, work):
    with open(f"{work}/rows.json", "w") as f:
        json.dump({"rows": rows, "weight": [0.0] * sum(map(len, rows))}, f)
    subprocess.run([heads, path, "f32", f"{work}/rows.json", f"{work}/heads"], check=True)
    data = open(f"{work}/heads", "rb").read()
    at = 4 + struct.unpack_from("<I", data)[0]
    n, = struct.unpack_from("<I", data, at)
    x, out, at = np.frombuffer(data, np.float32, n, at + 4).astype(np.float64), [], 0
    for row in rows:
        out.append(x[at + 1:at + len(row)])
        at += len(row)
    return np.concatenate(out)


def check_perplexity(heads, path, text, work):
    model = llama(path, WINDOW)
    rows = windows(model, text)
    a, b = perplexity_of(ours(heads, path, rows, work)), perplexity_of(theirs(model, rows))
    good = abs(b / a - 1) < 0.01
    print(f"{os.path.basename(path)}: perplexity of {len(rows)} x {WINDOW} tokens {a:.3f} here, {b:.3f} there ({100 * (b / a - 1):+.2f} %)"
          f"{'' if good else ': NOT WITHIN 1 %'}", flush=True)
    return good


def sums():
    return [{"messages": [{"role": "user", "content": f"What is {a} + {b}?"}], "answer": str(a + b)} for a in range(10) for b in range(10)]


def train(host, path, work):
    with open(f"{work}/rewards.py", "w") as f:
        f.write(REWARD)
    with open(f"{work}/train.jsonl", "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in sums())
    subprocess.run([host, "--preset", "chat-lora", "--policy", path, "--prompts", f"{work}/train.jsonl", "--reward",
                    f"python.so:file={work}/rewards.py,function=right", "--set", "log.progress=off", "--set", "log.level=warn", "--out",
                    f"{work}/run"], check=True, stdout=subprocess.DEVNULL)


def greedy(model, ids):
    """The likeliest tokens after ids, up to an end token."""
    model.reset()
    out = []
    while len(out) < NEW:
        model.eval(ids if not out else out[-1:])
        out.append(int(np.argmax(model.scores[model.n_tokens - 1])))
        if out[-1] == model.token_eos():
            break
    return out


def check_adapter(host, path, work):
    train(host, path, work)
    subprocess.run([host, "export", f"{work}/run", "--gguf", f"{work}/lora.gguf"], check=True, stdout=subprocess.DEVNULL)
    asked = random.Random(1).sample(sums(), PROMPTS // 2) + [
        {"messages": [{"role": "user", "content": q.format(p)}]} for q in QUESTIONS for p in PLACES]
    with open(f"{work}/ask.jsonl", "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in asked)
    said = subprocess.run([host, "generate", "--model", f"{work}/run", "--prompts", f"{work}/ask.jsonl", "--greedy", "--json", "--max-new",
                           str(NEW), "--dtype", "f32"], check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in said.splitlines()]
    count, last = {}, None
    for name, more in (("with", {"lora_path": f"{work}/lora.gguf"}), ("without", {})):
        model, count[name] = llama(path, 512, **more), 0
        for row in rows:
            ids, n = row["ids"], row["prompt_length"]
            got = greedy(model, ids[:n])
            count[name] += got[:len(ids) - n] == ids[n:]
            last = model.detokenize(got)
    good = len(rows) == PROMPTS and count["with"] > PROMPTS / 2 and count["with"] > count["without"]
    print(f"{os.path.basename(path)} with a trained LoRA file: {count['with']} of {len(rows)} greedy texts of up to {NEW} tokens are equal; "
          f"without the file there {count['without']}{'' if good else ': NOT MOST'}", flush=True)
    return good and last is not None


def main():
    host, heads, work, text, *files = sys.argv[1:]
    text = open(text, encoding="utf-8").read()[:TEXT]
    good = [check_perplexity(heads, path, text, work) for path in files]
    q8 = f"{work}/{os.path.basename(files[0]).removesuffix('.gguf')}-q8_0.gguf"
    subprocess.run([host, "export", files[0], "--gguf", q8, "--dtype", "q8_0"], check=True, stdout=subprocess.DEVNULL)
    good.append(check_perplexity(heads, q8, text, work))
    good.append(check_adapter(host, files[0], work))
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
