#!/usr/bin/env python3
"""A program for env_exec.so. It adds up the numbers of an episode's turns, and ends the episode at 10. With FAULT, it commits
that fault once, at the CALL-th line that it reads. It then creates the file MARK, and commits no fault while MARK exists.

playing.py [FAULT CALL MARK]   FAULT: hang, crash, exit, nonsense, huge, late, twice, other, unknown, close
"""
import json
import os
import signal
import sys
import time

fault, call, mark = (sys.argv[1:] + ["", "0", ""])[:3]
sums, lines = {}, 0
print(json.dumps({"tools": [{"type": "function", "function": {"name": "add", "parameters": {}}}], "finish": True}), flush=True)


def wrong(episode):
    open(mark, "w").close()
    if fault == "hang":
        time.sleep(60)
    elif fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault == "exit":
        sys.exit("out of luck")
    elif fault == "nonsense":
        print("}{", flush=True)
    elif fault == "huge":
        sys.stdout.write("x" * (5 << 20) + "\n")
        sys.stdout.flush()
    elif fault == "late":
        time.sleep(6)
    elif fault == "other":
        print(json.dumps({"episode": 999}), flush=True)
    elif fault == "unknown":
        print(json.dumps({"episode": episode, "score": 1}), flush=True)
    elif fault == "close":
        os.close(1)
        time.sleep(60)


for text in sys.stdin:
    line = json.loads(text)
    lines += 1
    what = next(k for k in ("reset", "step", "finish", "close") if k in line)
    episode = line[what]
    again = 0
    if fault and lines == int(call) and not os.path.exists(mark):
        wrong(episode)
        again = fault == "twice"
    if what == "close":
        del sums[episode]
        continue
    if what == "reset":
        sums[episode] = line["seed"] % 3
        out = {"say": f"from {sums[episode]}, {line['prompt']}{(line['row'] or {}).get('x', '')}"}
    elif what == "step" and line["text"] == "up":
        out = {"failed": "I give up"}
    elif what == "step" and line["text"].startswith("pay "):
        out = {"reward": json.loads(line["text"][4:]), "say": "paid"}
    elif what == "step":
        sums[episode] += int(line["text"] or 0)
        done = sums[episode] >= 10
        out = {"reward": sums[episode] / 2, "done": done, "metrics": {"sum": sums[episode]}}
        if done:
            out["verdict"] = "right"
        elif line["calls"]:
            out["say"] = [json.dumps(c["arguments"]) for c in line["calls"]]
        else:
            out["say"] = str(sums[episode])
    else:
        out = {"reward": 100 if line["end"] == "turns" else 0}
    print((json.dumps({"episode": episode, **out}) + "\n") * (1 + again), end="", flush=True)
