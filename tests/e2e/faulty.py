# The reward of faulty_reward.c in Python, for python.so. The environment has FAULTS=SEED,EVERY.
import os
import time


def number():
    n = 0
    if os.path.exists("asked"):
        n = int(open("asked").read() or 0)
    with open("asked", "w") as f:
        f.write(str(n + 1))
    return n + 1


def mix(text):
    h = 14695981039346656037
    for b in text.encode():
        h = (h ^ b) * 1099511628211 & (1 << 64) - 1
    return h


def go_wrong(kind, paid):
    with open("faults", "a") as f:
        f.write(kind + "\n")
    if kind == "crash":
        os.kill(os.getpid(), 11)
    if kind == "exit":
        os._exit(3)
    if kind == "hang":
        while True:
            time.sleep(1000)
    if kind == "raise":
        raise ValueError("no opinion \x1b[31m today")
    if kind == "length":
        return paid[:-1]
    if kind == "text":
        return ["much"] * len(paid)
    if kind == "memory":
        list(range(1 << 40))
    if kind == "nan":
        return [float("nan")] * len(paid)
    if kind == "slow":
        os.write(1, b"Loading checkpoint shards: 100%\n")
        time.sleep(0.2)
    return paid


KINDS = ["crash", "exit", "hang", "raise", "length", "text", "memory", "nan", "slow"]


def pays(prompts, completions, **kwargs):
    seed, every = (int(x) for x in os.environ.get("FAULTS", "0,0").split(","))
    paid = [mix(p + c) % 17 / 8 for p, c in zip(prompts, completions)]
    if not every:
        return paid
    draw = mix("%d %d" % (seed, number())) >> 13
    return go_wrong(KINDS[draw // every % len(KINDS)], paid) if draw % every == 0 else paid
