"""A run makes its page when it ends (log.report), and succeeds even if the page cannot be written. usage: test_after_run.py PROGRAM"""
import json
import os
import re
import subprocess
import sys
import tempfile

PROGRAM = os.path.realpath(sys.argv[1])
SMALL = ["--set", "batch.size=4", "--set", "sampling.max_new_tokens=8", "--set", "algo.minibatches=1", "--set", "log.tensorboard=false"]


def train(at, *args):
    done = subprocess.run([PROGRAM, *args], cwd=at, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1000:]
    return done.stderr


with tempfile.TemporaryDirectory() as at:
    ppo = ["--algo", "ppo.so", "--reward", "period_count.so", "--phases", "1", *SMALL]
    said = train(at, *ppo, "--out", "a")
    page = open(f"{at}/a/report.html", encoding="utf-8").read()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["runs"][0]["phases"] == 1 and data["runs"][0]["name"] == "a", data["runs"][0]["name"]
    assert "report was not written" not in said

    with open(f"{at}/a/report.html", "w") as f:
        f.write("mine")
    said = train(at, "--resume", "a", "--phases", "2")
    assert "warning" in said and "the report was not written: " in said, said
    assert open(f"{at}/a/report.html").read() == "mine"
    os.remove(f"{at}/a/report.html")
    train(at, "--resume", "a", "--phases", "3")
    assert "made by rlhf-host" in open(f"{at}/a/report.html").read()

    train(at, *ppo, "--set", "log.report=false", "--out", "b")
    assert not os.path.exists(f"{at}/b/report.html")
print("ok")
