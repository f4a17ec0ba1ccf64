#!/usr/bin/env python3
"""Compares python.so with TRL: both call the functions of trl_functions.py on the same texts. TRL's side is its own code
(GRPOTrainer._calculate_rewards and the sum after it).

Usage: trl_rewards.py ORACLE_REWARDS DIRECTORY_OF_PLUGINS

Exit status 0: equal to the bit; 1: not equal, with the first rows that differ.
"""
import json
import logging
import math
import os
import random
import subprocess
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
from accelerate import PartialState
from trl import GRPOTrainer
from trl.trainer.utils import start_event_loop_in_daemon

import trl_functions

PROGRAM, PLUGINS = sys.argv[1:]
BATCH = 64
HERE = os.path.dirname(os.path.abspath(__file__))


def trainer(names):
    functions = [getattr(trl_functions, name) for name in names]
    thread, loop, ready = start_event_loop_in_daemon()
    ready.wait()
    fake = SimpleNamespace(
        accelerator=SimpleNamespace(device="cpu", is_main_process=True), reward_funcs=functions,
        reward_processing_classes=[None] * len(names), reward_func_names=names,
        state=SimpleNamespace(global_step=0), environments=None, async_loop=loop,
        args=SimpleNamespace(report_to=[]), _pending_extra_logs=defaultdict(list),
        _pending_metrics=defaultdict(list))
    for name in ("_log_completion_extra", "_log_metric", "_calculate_rewards"):
        setattr(fake, name, getattr(GRPOTrainer, name).__get__(fake))
    return fake


def theirs(names, weights, batches):
    fake = trainer(names)
    total = []
    for rows in batches:
        inputs = [row["row"] for row in rows]
        prompts = [x["prompt"] for x in inputs]
        said = [row["response"] for row in rows]
        chat = isinstance(prompts[0], list)
        completions = [[{"role": "assistant", "content": t}] for t in said] if chat else said
        per_function = fake._calculate_rewards(inputs, prompts, completions, [row["ids"] for row in rows])
        # as in _generate_and_score_completions
        rewards = (per_function * torch.tensor(weights, dtype=torch.float32).unsqueeze(0)).nansum(dim=1)
        rewards[torch.isnan(per_function).all(dim=1)] = torch.nan
        total += rewards.tolist()
    return total


def ours(names, weights, batches):
    text = "".join(json.dumps(rows) + "\n" for rows in batches)
    options = [f"file={HERE}/trl_functions.py", "function=" + ",".join(names),
               "weights=" + ",".join(map(str, weights)), f"python={sys.executable}"]
    out = subprocess.run([PROGRAM, f"{PLUGINS}/python.so", *options], input=text, text=True,
                         capture_output=True)
    if out.returncode:
        raise SystemExit(f"{names}: {out.stderr}")
    # nine digits identify a float32
    return torch.tensor([float(line) for line in out.stdout.split()]).tolist()


def text(rng):
    pieces = ["<think>", "</think>", "\n", " ", "a", "é", "😀", "3 + 4", "\\boxed{7}", "\\boxed{8}",
              "\u2028", "\0", "\"", "so it is", "\\"]
    start = rng.choice(["<think>", "<think>", ""])
    return start + "".join(rng.choices(pieces, k=rng.randrange(10)))


def batches(rng, n, chat):
    rows = []
    for _ in range(n):
        prompt = rng.choice(["What is 3 + 4?", "A sum", "ñ\n"])
        rows.append({"prompt": prompt, "response": text(rng),
                     "ids": rng.choices(range(9), k=rng.randrange(60)),
                     "row": {"prompt": [{"role": "user", "content": prompt}] if chat else prompt,
                             "solution": rng.choice(["\\boxed{7}", "\\boxed{8}", "none"]),
                             "level": rng.choice([None, 1, 2.5, -3])}})
    return [rows[i:i + BATCH] for i in range(0, n, BATCH)]


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def main():
    PartialState(cpu=True)
    logging.disable(logging.WARNING)  # about rows without a reward
    rng = random.Random(20260722)
    chats, plain = batches(rng, 3000, True), batches(rng, 3000, False)
    failed = 0
    for names, weights, on in (
            (["think_format_reward"], [1], chats), (["accuracy_reward"], [1], chats),
            (["reasoning_accuracy_reward"], [1], chats), (["cosine"], [1], chats),
            (["overlong"], [1], plain), (["repetition"], [1], plain), (["some"], [1], plain),
            (["later"], [1], plain), (["shouts"], [1], chats),
            (["accuracy_reward", "think_format_reward", "overlong"], [1, 0.1, 0.3], chats),
            (["some", "later", "repetition", "shouts"], [0.7, -0.3, 1, 0.01], plain),
            (["some", "later"], [1, 1], chats)):
        want, got = theirs(names, weights, on), ours(names, weights, on)
        assert len(want) == len(got), (names, len(want), len(got))
        bad = [i for i in range(len(want)) if not same(want[i], got[i])]
        paid = [x for x in got if not math.isnan(x)]
        print(f"{'+'.join(names)}: {len(got)} texts, {len(bad)} differences, mean "
              f"{sum(paid) / len(paid):.3f}, {len(got) - len(paid)} not paid")
        for i in bad[:3]:
            print(f"  row {i}: {got[i]!r} here, {want[i]!r} there")
        failed |= bool(bad)
    return failed


if __name__ == "__main__":
    sys.exit(main())
