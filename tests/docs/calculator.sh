#!/bin/sh
# models/calc: the recipe reproduces its files, and held-out problems do not occur elsewhere. The
# two runs of docs/calculator.md raise the share of right answers; functions in Python give the same
# rows as the calculator in C.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$RLHF_SOURCE_DIR/models/calc recipe=$RLHF_SOURCE_DIR/models/recipe/calc
host=$RLHF_BUILD_DIR/bin/rlhf-host

mkdir "$work/made"
python3 "$recipe/make-rows.py" "$work/made" 3000
python3 "$recipe/make-tokenizer.py" "$work/made"
for file in prompts.jsonl heldout.jsonl form.jsonl tokenizer.json tokenizer_config.json chat_template.jinja; do
    cmp "$work/made/$file" "$model/$file"
done
python3 - "$work/made" <<'PY'
import gzip, json, os, re, sys

def problems(name):
    open_ = gzip.open if name.endswith(".gz") else open
    with open_(os.path.join(sys.argv[1], name), "rt") as f:
        for line in f:
            row = json.loads(line)
            talk = row.get("messages") or row["prompt"]
            for said in talk:
                found = re.fullmatch(r"(\d+)\*(\d+)=", said["content"])
                if found:
                    a, b = map(int, found.groups())
                    assert "answer" not in row or row["answer"] == str(a * b), row
                    yield min(a, b), max(a, b)

held_out = set(problems("heldout.jsonl"))
assert len(held_out) > 900
for name in ("prompts.jsonl", "form.jsonl", "base.jsonl.gz"):
    assert not held_out & set(problems(name)), f"a held-out problem is in {name}"
PY

cd "$work"
"$host" --preset calculator-form --out form >form.log 2>&1 || { cat form.log >&2; exit 1; }
cat >tools.py <<'PY'
def calculator(expression: str) -> str:
    """
    Computes a product.

    Args:
        expression: Two numbers with * between.
    """
    a, b = expression.split("*")
    return str(int(a) * int(b))
PY
short='--policy form/checkpoints/latest --set data.eval_every=12 --set data.eval_limit=256'
"$host" --preset calculator $short --set run.stop_after=12 --out c >c.log 2>&1 || { cat c.log >&2; exit 1; }
"$host" --preset calculator $short --set run.stop_after=1 --env env_python.so:file=tools.py,tools=calculator \
    --out python >python.log 2>&1 || { cat python.log >&2; exit 1; }
python3 - <<'PY'
import json
rows = [json.loads(line) for line in open("c/metrics.jsonl")]
start = next(r["eval/reward"] for r in rows if "eval/reward" in r)
end = [r["eval/reward"] for r in rows if "eval/reward" in r][-1]
assert start <= 0.5, start
assert end > start + 0.15, (start, end)
assert all(r["sampling/logp_difference/max"] == 0 for r in rows if r["phase"] > 0)
last = [r for r in rows if "tools/call_frequency" in r]
assert last[-1]["tools/call_frequency"] > last[0]["tools/call_frequency"]
python = [json.loads(line) for line in open("python/metrics.jsonl")]
assert any("tools/call_frequency" in r for r in python)
PY
