#!/bin/sh
# models/arith: the recipe reproduces its files, its problems are right, and held-out problems do
# not occur elsewhere. The model has at most 8 million parameters. `--preset arithmetic` raises the
# share of right answers, from any directory.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$RLHF_SOURCE_DIR/models/arith recipe=$RLHF_SOURCE_DIR/models/recipe/arith
host=$RLHF_BUILD_DIR/bin/rlhf-host

mkdir "$work/made"
python3 "$recipe/make-problems.py" "$work/made" 20000
python3 "$recipe/make-tokenizer.py" "$work/made"
for file in prompts.jsonl heldout.jsonl tokenizer.json tokenizer_config.json; do
    cmp "$work/made/$file" "$model/$file"
done
python3 - "$work/made" "$model" <<'PY'
import gzip, json, os, re, struct, sys
made, model = sys.argv[1:]

def parts(text):
    a, kind, b, answer = re.fullmatch(r"(\d+)([-+*])(\d+)=(\d*)", text).groups()
    a, b = int(a), int(b)
    right = {"+": a + b, "-": a - b, "*": a * b}[kind]
    return (kind, min(a, b), max(a, b)), answer == str(right), str(right)

def rows(name):
    with open(os.path.join(model, name)) as f:
        return [json.loads(line) for line in f]

held_out, prompts = rows("heldout.jsonl"), rows("prompts.jsonl")
for row in held_out + prompts:
    assert parts(row["prompt"])[2] == row["answer"], row
kept = {parts(row["prompt"])[0] for row in held_out}
assert not kept & {parts(row["prompt"])[0] for row in prompts}, "a held-out problem is a prompt"
for name, right in (("examples", 9 / 20), ("unsure", 7 / 20)):
    with gzip.open(os.path.join(made, name + ".jsonl.gz"), "rt") as f:
        examples = [parts(json.loads(line)["text"]) for line in f]
    assert not kept & {problem for problem, _, _ in examples}, f"a held-out problem is in {name}"
    share = sum(ok for _, ok, _ in examples) / len(examples)
    assert abs(share - right) < 0.02, f"{share} of {name} are right"

with open(os.path.join(model, "model.safetensors"), "rb") as f:
    tensors = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
tensors.pop("__metadata__", None)
assert {t["dtype"] for t in tensors.values()} == {"BF16"}
n = 0
for t in tensors.values():
    size = 1
    for d in t["shape"]:
        size *= d
    n += size
assert n <= 8_000_000, f"{n} parameters"
with open(os.path.join(model, "config.json")) as f:
    assert json.load(f)["model_type"] == "qwen3"
PY

cd "$work"
"$host" --preset arithmetic --set run.stop_after=30 --set data.eval_every=30 --set run.dir=run --set log.samples_every=0 \
    >log 2>&1 || { cat log >&2; exit 1; }
grep -q "held-out reward .* before the first phase" log
python3 - run/metrics.jsonl <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
before, after = rows[0]["eval/reward"], rows[-1]["eval/reward"]
assert 0.3 <= before <= 0.5, f"{before} before training"
assert after >= before + 0.1, f"{before} before, {after} after 30 phases"
assert rows[1]["sampling/logp_difference/max"] == 0
PY
python3 "$RLHF_SOURCE_DIR/scripts/plot-runs" curve.svg eval/reward "Exact answers" GRPO=run
[ "$(grep -c '<polyline' curve.svg)" -eq 1 ]
for algo in ppo rloo; do
    "$host" --preset arithmetic --algo $algo.so --set run.stop_after=2 --set batch.size=64 --set data.eval_path= \
        --set run.dir=$algo --set log.samples_every=0 >log 2>&1 || { cat log >&2; exit 1; }
    [ -f $algo/checkpoints/000002/model.safetensors ]
done
