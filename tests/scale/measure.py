#!/usr/bin/env python3
"""Checks the sizes that `rlhf-host scale` measures, and that it leaves no files. Times are not compared.

    tests/scale/measure.py PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
SHORT = ["--set", "sampling.max_new_tokens=4", "--set", "prompts.length=4", "--set", "log.level=error"]


def scale(*args):
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "rows.jsonl"), "w") as rows:
            for i in range(32):
                rows.write(json.dumps({"text": "a film " * (1 + i % 5)}) + "\n")
        os.mkdir(os.path.join(work, "tmp"))
        done = subprocess.run([PROGRAM, "scale", "--network", "1gbit,1ms", "--json", *args], cwd=work,
                              env=dict(os.environ, TMPDIR=os.path.join(work, "tmp")),
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        left = sorted(os.listdir(work))
        assert left == ["rows.jsonl", "tmp"] and not os.listdir(os.path.join(work, "tmp")), left
    return json.loads(done.stdout)


def sizes(curve):
    for size, seconds in curve:
        assert seconds > 0
    times = [seconds for _, seconds in curve]
    assert times == sorted(times), times
    return [size for size, _ in curve]


def common(figures):
    run, machine = figures["run"], figures["machine"]
    for key in ("step_s", "pack_s", "copy_bytes_per_s", "products_per_s", "memory_bytes"):
        assert machine[key] > 0, key
    assert machine["tokens"] == sum(machine["lengths"])
    assert len(machine["lengths"]) == machine["rows"]
    assert machine["memory_moments_bytes"] >= 8 * run["parameters"]


def ppo():
    said = scale("--algo", "ppo.so:minibatches=2,epochs=3", "--reward", "period_count.so",
                 "--set", "batch.size=8", "--set", "parallel.shards=4", *SHORT)
    run, machine = said["figures"]["run"], said["figures"]["machine"]
    common(said["figures"])
    assert (run["rows"], run["group"], run["minibatches"], run["epochs"]) == (8, 1, 2, 3), run
    assert (run["shards"], run["whole_groups"], run["moments"], run["reward_dealt"]) == (4, 0, 2, 1)
    assert machine["rows"] == 8 and machine["tokens"] == sum(machine["lengths"])
    assert machine["passes_s"] > 0 and machine["decode_products"] > 0
    assert sizes(machine["draw"]) == [1, 2, 4, 8]
    assert sizes(machine["learn"])[-1] == sum(machine["lengths"][:4]) and len(machine["learn"]) == 3
    ranks = [x["ranks"] for x in said["forecast"] if "refused" not in x]
    assert ranks == [1, 2, 4], ranks


def grpo():
    # 64 rows are halved until at most 20 are left.
    said = scale("--algo", "grpo.so:group_size=4", "--reward", "period_count.so", "--measured-rows", "20",
                 "--set", "batch.size=64", *SHORT)
    run, machine = said["figures"]["run"], said["figures"]["machine"]
    common(said["figures"])
    assert (run["rows"], run["group"], machine["rows"]) == (64, 4, 16), (run, machine["rows"])
    assert run["whole_groups"] >= 1 and run["shards"] == 0
    assert sizes(machine["draw"]) == [4, 8, 16]


def sft():
    said = scale("--algo", "sft.so", "--data", "rows.jsonl", "--set", "batch.size=16",
                 "--set", "log.level=error")
    machine = said["figures"]["machine"]
    common(said["figures"])
    assert machine["draw"] == [] and machine["reward_s"] >= 0
    assert len(machine["learn"]) == 5
    assert all(x["seconds"]["draw"] == 0 for x in said["forecast"] if "refused" not in x)


for test in (ppo, grpo, sft):
    test()
    print(test.__name__, "ok")
