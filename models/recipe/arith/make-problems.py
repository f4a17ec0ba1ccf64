#!/usr/bin/env python3
"""Write the problems of models/arith: sums, differences and products.

usage: make-problems.py OUT_DIR [EXAMPLES AT MOST]

  examples.jsonl.gz   {"text": "27+65=92"}                  for sft, 11 of 20 wrong
  unsure.jsonl.gz     the same, 13 of 20 wrong              for the last steps of sft
  prompts.jsonl       {"prompt": "27+65=", "answer": "92"}  for reinforcement learning
  heldout.jsonl       the same, only for evaluation

The numbers of a sum or a difference have up to three digits. The first number of a product has up
to two digits, the second has one. One problem in ten is held out. A checksum that does not depend
on the order of the operands decides this, so neither the problem nor its mirror image is in the
other files. The rows are the same on every machine.

In a wrong example one digit of the answer, at a random place, is too high or too low by one. A
model that learns from these examples knows the task, but is wrong more often than right.
"""
import gzip
import json
import os
import random
import sys
import zlib

EXAMPLES, UNSURE, PROMPTS, HELD_OUT = 800000, 100000, 6144, 1024


def draw(rng):
    """(prompt, answer, whether it is held out)."""
    kind = rng.choice("+-*")
    if kind == "*":
        a, b = rng.randrange(100), rng.randrange(10)
    else:
        a, b = rng.randrange(1000), rng.randrange(1000)
    low, high = sorted((a, b))
    if kind == "-":
        a, b = high, low
    elif rng.randrange(2):
        a, b = b, a
    answer = a + b if kind == "+" else a - b if kind == "-" else a * b
    held_out = zlib.crc32(f"{low} {kind} {high}".encode()) % 10 == 0
    return f"{a}{kind}{b}=", str(answer), held_out


def problems(rng, n, held_out, distinct):
    seen = set()
    while n:
        prompt, answer, out = draw(rng)
        if out == held_out and not (distinct and prompt in seen):
            seen.add(prompt)
            n -= 1
            yield prompt, answer


def slip(rng, answer):
    at, step = rng.randrange(len(answer)), rng.choice((-1, 1))
    digit = (int(answer[at]) + step) % 10
    if digit == 0 and at == 0 and len(answer) > 1:
        digit = (int(answer[at]) - step) % 10  # no number begins with 0
    return answer[:at] + str(digit) + answer[at + 1 :]


def write_problems(path, seed, n, held_out):
    with open(path, "w", encoding="utf-8") as f:
        for prompt, answer in problems(random.Random(seed), n, held_out, True):
            f.write(json.dumps({"prompt": prompt, "answer": answer}) + "\n")


def write_examples(path, seed, n, wrong):
    rng = random.Random(seed)
    with open(path, "wb") as f, gzip.GzipFile(filename="", fileobj=f, mode="wb", mtime=0) as z:
        for prompt, answer in problems(rng, n, False, False):
            if rng.randrange(20) < wrong:
                answer = slip(rng, answer)
            z.write((json.dumps({"text": prompt + answer}) + "\n").encode())


def main():
    out, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else EXAMPLES
    os.makedirs(out, exist_ok=True)
    write_problems(os.path.join(out, "heldout.jsonl"), 1, HELD_OUT, True)
    write_problems(os.path.join(out, "prompts.jsonl"), 2, PROMPTS, False)
    write_examples(os.path.join(out, "examples.jsonl.gz"), 3, min(EXAMPLES, most), 11)
    write_examples(os.path.join(out, "unsure.jsonl.gz"), 4, min(UNSURE, most), 13)


if __name__ == "__main__":
    main()
