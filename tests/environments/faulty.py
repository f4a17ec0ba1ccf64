#!/usr/bin/env python3
"""A game for env_exec.so, and as a class for env_python.so, that goes wrong now and then.

It counts the bytes of an episode's turns, and ends the episode after three turns. At about one in RATE lines that it reads, it commits the
next fault of the list KINDS instead, until it has committed MOST faults. The file COUNT keeps the counts across restarts.

faulty.py RATE MOST COUNT KIND...   KIND: hang, late, crash, exit, nonsense, huge, twice, other, unknown, close, failed
"""
import json
import os
import signal
import sys
import time


def next_fault(rate, most, count, kinds):
    """The kind of fault that is due, or None."""
    try:
        with open(count) as f:
            calls, faults = map(int, f.read().split())
    except FileNotFoundError:
        calls = faults = 0
    due = faults < most and (calls * 2654435761 >> 7) % rate == 0
    with open(count + ".new", "w") as f: # renamed, as it may be killed at any time
        f.write(f"{calls + 1} {faults + due}")
    os.replace(count + ".new", count)
    return kinds[faults % len(kinds)] if due else None


def go_wrong(fault):
    if fault == "hang":
        time.sleep(600)
    elif fault == "late":
        time.sleep(4)
    elif fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "exit":
        os._exit(3)


class Game:
    """The game as an environment of gymnasium."""

    def reset(self, seed=None, options=None):
        self.sum, self.turns = (seed or 0) % 5, 0
        fault = next_fault(*how())
        go_wrong(fault)
        if fault == "failed":
            raise RuntimeError("no luck today")
        return f"{self.sum}?", {}

    def step(self, text):
        fault = next_fault(*how())
        go_wrong(fault)
        if fault == "failed":
            raise RuntimeError("no luck today")
        self.sum += len(text)
        self.turns += 1
        return f"{self.sum}.", (self.sum % 4) / 2, self.turns == 3, False, {"sum": self.sum}


def how():
    words = os.environ["FAULTY"].split()
    return int(words[0]), int(words[1]), words[2], words[3:]


def answer(line, sums, episode):
    if "reset" in line:
        sums[episode] = [line["seed"] % 5, 0]
        return {"say": f"{sums[episode][0]}?"}
    one = sums[episode]
    one[0] += len(line["text"].encode())
    one[1] += 1
    out = {"reward": (one[0] % 4) / 2, "metrics": {"sum": one[0]}}
    return {**out, "done": True, "verdict": "right"} if one[1] == 3 else {**out, "say": f"{one[0]}."}


def main():
    given = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    sums = {}
    print("{}", flush=True)
    for text in sys.stdin:
        line = json.loads(text)
        episode = next(line[k] for k in ("reset", "step", "close") if k in line)
        fault = None if "close" in line else next_fault(*given)
        go_wrong(fault)
        if "close" in line:
            sums.pop(episode, None)
            continue
        if fault == "nonsense":
            print("}{", flush=True)
        elif fault == "huge":
            print("x" * (5 << 20), flush=True)
        elif fault == "other":
            print('{"episode": 999999}', flush=True)
        elif fault == "unknown":
            print(json.dumps({"episode": episode, "score": 1}), flush=True)
        elif fault == "failed":
            print(json.dumps({"episode": episode, "failed": "no luck today"}), flush=True)
            continue
        elif fault == "close":
            os.close(1)
            time.sleep(600)
        said = json.dumps({"episode": episode, **answer(line, sums, episode)}) + "\n"
        print(said * (2 if fault == "twice" else 1), end="", flush=True)


if __name__ == "__main__":
    main()
