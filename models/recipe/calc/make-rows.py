#!/usr/bin/env python3
"""Write the rows of models/calc.

usage: make-rows.py OUT_DIR [BASE ROWS AT MOST]

  base.jsonl.gz    conversations without tools: products, and texts to repeat in several forms, for the first stage
  form.jsonl       200 conversations, half with a call of the calculator, for the second stage
  prompts.jsonl    {"prompt": [a user's message], "answer": "30015"}, for reinforcement learning
  heldout.jsonl    the same, only for evaluation

The problems are products of two numbers from 400 to 999, which have six digits; in the first stage the numbers begin at 100. One in ten is
held out, by a checksum of what it is apart from the order of its operands, so neither it nor its mirror image is in the other files. The same
rows on every machine.
"""
import gzip
import json
import os
import random
import sys
import zlib

BASE, FORM, PROMPTS, HELD_OUT = 48000, 200, 6144, 1024


def problem(rng, held_out=False, least=400):
    """(question, answer) of a product that is held out or not."""
    while True:
        a, b = rng.randrange(least, 1000), rng.randrange(least, 1000)
        if (zlib.crc32(f"{min(a, b)} * {max(a, b)}".encode()) % 10 == 0) == held_out:
            return f"{a}*{b}", str(a * b)


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def expression(rng):
    if rng.randrange(2):
        return problem(rng, least=100)[0]
    return "".join(rng.choice("0123456789*") for _ in range(rng.randrange(1, 10)))


# Ways in which the assistant repeats a text that the user gives it.
FORMS = (("say {}", "{}"), ("[{}]", "{}"), ("quote {}", '"{}"'), ("list {}", "[{}]"), ("name {}", '{{"x": "{}"}}'))


def base_row(rng):
    talk = []
    for _ in range(rng.randrange(1, 4)):
        if rng.randrange(3) == 0:
            question, answer = problem(rng, least=100)
            talk += [user(question + "="), assistant(answer)]
        else:
            asked, said = rng.choice(FORMS)
            text = expression(rng)
            talk += [user(asked.format(text)), assistant(said.format(text))]
    return {"messages": talk}


def slip(rng, digits):
    """The text with another digit at one place."""
    at = rng.choice([k for k, c in enumerate(digits) if c.isdigit()])
    return digits[:at] + str((int(digits[at]) + rng.randrange(1, 10)) % 10) + digits[at + 1:]


def compute(text):
    a, b = text.split("*")
    return str(int(a) * int(b))


def form_row(rng, called):
    question, answer = problem(rng)
    if not called:
        return {"messages": [user(question + "="), assistant(answer)]}
    call = {"type": "function", "function": {"name": "calculator", "arguments": {"expression": question}}}
    return {"messages": [user(question + "="), {"role": "assistant", "content": "", "tool_calls": [call]},
                         {"role": "tool", "name": "calculator", "content": answer}, assistant(answer)]}


def write(path, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with open(path, "wb") as f:
        if not path.endswith(".gz"):
            f.write(text)
            return
        with gzip.GzipFile(filename="", fileobj=f, mode="wb", mtime=0) as z:
            z.write(text)


def prompts(rng, n, held_out):
    rows = {}
    while len(rows) < n:
        question, answer = problem(rng, held_out)
        rows[question] = {"prompt": [user(question + "=")], "answer": answer}
    return rows.values()


def main():
    out, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else BASE
    os.makedirs(out, exist_ok=True)
    rng = random.Random(1)
    write(os.path.join(out, "heldout.jsonl"), prompts(rng, HELD_OUT, True))
    rng = random.Random(2)
    write(os.path.join(out, "prompts.jsonl"), prompts(rng, PROMPTS, False))
    rng = random.Random(3)
    write(os.path.join(out, "form.jsonl"), [form_row(rng, k % 2 == 1) for k in range(FORM)])
    rng = random.Random(4)
    write(os.path.join(out, "base.jsonl.gz"), [base_row(rng) for _ in range(min(BASE, most))])


if __name__ == "__main__":
    main()
