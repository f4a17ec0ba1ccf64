#!/usr/bin/env python3
"""Compares rewards of random texts by the shipped plugins with those of the functions of TRL's `rewards` package.

Usage: rewards.py ORACLE_REWARDS DIRECTORY_OF_PLUGINS

think_format_reward, get_soft_overlong_punishment, get_cosine_scaled_reward and get_repetition_penalty_reward are compared
on all texts. accuracy_reward and reasoning_accuracy_reward are compared on numbers in boxes, if math_verify, which they
need, is installed. Without it, the cosine reward uses our verdicts.

Exit status 0: equal; 1: some rewards differ, with the first of them.
"""
import json
import random
import struct
import subprocess
import sys

from trl.import_utils import is_math_verify_available
from trl.rewards import (accuracy_reward, get_cosine_scaled_reward, get_repetition_penalty_reward,
                         get_soft_overlong_punishment, reasoning_accuracy_reward,
                         think_format_reward)
from trl.rewards import accuracy_rewards

PROGRAM, PLUGINS = sys.argv[1:]
failed = 0


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def ours(plugin, options, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    out = subprocess.run([PROGRAM, f"{PLUGINS}/{plugin}", *options], input=text, text=True,
                         capture_output=True)
    if out.returncode:
        raise SystemExit(f"{plugin} {options}: {out.stderr}")
    return [f32(float(line)) for line in out.stdout.split()]


def chat(texts):
    return [[{"role": "assistant", "content": t}] for t in texts]


def compare(what, got, want, inputs):
    global failed
    assert len(got) == len(want) == len(inputs), (what, len(got), len(want))
    bad = [i for i in range(len(got)) if got[i] != f32(want[i])]
    print(f"{what}: {len(got)} texts, {len(bad)} differences, mean {sum(got) / len(got):.3f}")
    for i in bad[:5]:
        print(f"  {inputs[i]!r}: {got[i]} here, {want[i]} there")
    failed |= bool(bad)


def think(rng):
    pieces = ["<think>", "</think>", "<think>", "</think>", "\n", " ", "a", "é", "<", "think>",
              "<think", "</think", "<Think>", "\r", "\u2028", "\0"]
    texts = ["".join(rng.choices(pieces, k=rng.randrange(9))) for _ in range(10000)]
    texts += ["<think>" + "".join(rng.choices(pieces[4:] + ["</think>"], k=rng.randrange(9)))
              for _ in range(10000)]
    want = think_format_reward(chat(texts))
    rows = [{"response": t} for t in texts]
    compare("think_format_reward", ours("format.so", [], rows), want, texts)
    pattern = r"pattern=(?ms)^<think>(?!.*<think>)(.*?)</think>.*$"
    compare("think_format_reward, its pattern",
            ours("format.so", [pattern, "match=begin"], rows), want, texts)


def overlong(rng):
    for _ in range(20):
        longest = rng.randrange(1, 400)
        cache = rng.randrange(0, longest + 1)
        ids = [[1] * rng.randrange(0, longest + 40) for _ in range(400)]
        want = get_soft_overlong_punishment(longest, cache)(ids)
        got = ours("length.so", [f"max_len={longest}", f"cache={cache}"],
                   [{"response": "", "ids": x} for x in ids])
        compare(f"get_soft_overlong_punishment({longest}, {cache})", got, want,
                [len(x) for x in ids])


def repetition(rng):
    for n in (1, 2, 3, 5):
        ids = [rng.choices(range(rng.randrange(1, 6)), k=rng.randrange(0, 30)) for _ in range(2000)]
        want = [-x for x in get_repetition_penalty_reward(n, -1.0)(ids)]
        got = ours("ngram3.so", ["unit=tokens", f"n={n}"], [{"response": "", "ids": x} for x in ids])
        compare(f"get_repetition_penalty_reward({n})", got, want, ids)


def integer(rng):
    return rng.choice([rng.randrange(-20, 100), rng.randrange(1000, 10**7)])


def written(rng, x):
    """An integer, in a form that both sides can read."""
    forms = [f"{x}", f"{x}", f"{x}.0", f"{x}.00", f"\\frac{{{2 * x}}}{{2}}", f"x = {x}", f" {x} ",
             f"\\text{{{x}}}"]
    if x >= 0:
        forms += [f"{x:,}", f"\\${x}", f"{x:,}".replace(",", "{,}"), f"{x}\\%",
                  f"{x}\\text{{ apples}}", f"\\dfrac{{{3 * x}}}{{3}}"]
    return rng.choice(forms)


def problem(rng):
    """A solution, a response, and whether it has a box."""
    kind = rng.randrange(10)
    if kind < 2:
        a, b = rng.randrange(1, 9), rng.randrange(2, 12)
        gold, said = f"\\frac{{{a}}}{{{b}}}", rng.choice([f"\\frac{{{2 * a}}}{{{2 * b}}}",
                                                         f"\\dfrac{{{a}}}{{{b}}}",
                                                         f"\\frac{{{a + 1}}}{{{b}}}"])
    else:
        x = integer(rng)
        gold, said = str(x), written(rng, x if rng.random() < 0.6 else x + rng.choice([-1, 1, 10]))
    words = rng.choice(["So it is ", "First 3 and 4, then ", "The answer: ", ""])
    return gold, f"{words}$\\boxed{{{said}}}$" + rng.choice(["", ".", " as said.", "\n"])


def answers(rng):
    if not is_math_verify_available():
        print("accuracy_reward: not compared, math_verify is not there")
        return
    pairs = [problem(rng) for _ in range(3000)]
    rows = [{"response": said, "row": {"answer": gold}} for gold, said in pairs]
    boxed = [f"\\boxed{{{gold}}}" for gold, _ in pairs]
    want = accuracy_reward(chat([said for _, said in pairs]), boxed)
    compare("accuracy_reward", ours("answer.so", ["where=boxed"], rows), want, pairs)
    shares = [(f"{x / 100}", f"\\boxed{{{y}\\%}}") for x, y in
              ((x, rng.choice([x, x, x + 1])) for x in rng.choices(range(1, 1000), k=500))]
    want = accuracy_reward(chat([s for _, s in shares]), [f"\\boxed{{{g}}}" for g, _ in shares])
    got = ours("answer.so", ["where=boxed", "percent=either"],
               [{"response": s, "row": {"answer": g}} for g, s in shares])
    compare("accuracy_reward, percent", got, want, shares)
    said = [(gold, rng.choice(["<think>\\boxed{3}</think>", "<think>", "</think></think>", ""]) + s)
            for gold, s in pairs]
    want = reasoning_accuracy_reward(chat([s for _, s in said]), boxed)
    rows = [{"response": s, "row": {"answer": gold}} for gold, s in said]
    compare("reasoning_accuracy_reward", ours("answer.so", ["where=boxed", "after=</think>"], rows),
            want, said)


def cosine(rng):
    pairs = [problem(rng) for _ in range(1000)]
    rows = [{"response": said, "row": {"answer": gold}, "ids": [1] * rng.randrange(0, 300)}
            for gold, said in pairs]
    if not is_math_verify_available():
        right = ours("answer.so", ["where=boxed"], rows)
        accuracy_rewards.accuracy_reward = lambda completions, solution: right
    for ends in ((-1.0, -0.5, 0.5, 1.0), (-10.0, 0.0, 1.0, 2.0), (0.1, 0.3, 0.7, 0.2)):
        longest = rng.randrange(1, 280)
        want = get_cosine_scaled_reward(longest, *ends)(
            chat([said for _, said in pairs]), [f"\\boxed{{{gold}}}" for gold, _ in pairs],
            [row["ids"] for row in rows])
        names = ("wrong_short", "wrong_long", "right_long", "right_short")
        options = [f"{k}={v}" for k, v in zip(names, ends)]
        got = ours("length.so", ["shape=cosine", "where=boxed", f"max_len={longest}", *options],
                   rows)
        compare(f"get_cosine_scaled_reward({longest}, {ends})", got, want, pairs)


def main():
    rng = random.Random(20260722)
    for check in (think, overlong, repetition, answers, cosine):
        check(rng)
    return failed


if __name__ == "__main__":
    sys.exit(main())
