#!/bin/sh
# The calculator job on directories that transformers wrote: a Llama, which calls in the form of
# Llama 3, and a Qwen3. Their random weights learn the form of a call, but not how to copy digits.
# Skipped (77) if transformers cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import transformers, torch' 2>/dev/null || {
    echo "skipped: $python has no transformers (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
HF_HUB_OFFLINE=1 "$python" -W ignore "$here/calculator.py" "$root"
host=$RLHF_BUILD_DIR/bin/rlhf-host
quiet="--set log.progress=off --set log.level=warn --threads 1"
for form in llama qwen3; do
    # shellcheck disable=SC2086
    "$host" --preset calculator-form --policy $form --set data.path="$root/models/calc/form.jsonl" \
        --set run.phases=200 --out $form-form $quiet
    # shellcheck disable=SC2086
    "$host" --preset calculator --policy $form-form/checkpoints/latest \
        --set prompts.path="$root/models/calc/prompts.jsonl" --set data.eval_path= \
        --set episodes.tokens=300 --set sampling.max_new_tokens=100 \
        --set run.phases=3 --set log.rollouts=true --out $form-run $quiet
    "$host" export $form-run --to $form-out
    HF_HUB_OFFLINE=1 "$python" -W ignore - $form <<'END'
import json, sys
import transformers as hf
form = sys.argv[1]
rows = [json.loads(line) for line in open(f"{form}-run/metrics.jsonl")]
tok = hf.AutoTokenizer.from_pretrained(f"{form}-out")
texts = [tok.decode(json.loads(line)["ids"]) for line in open(f"{form}-run/rollouts.jsonl") if '"segments"' in line]
mark = {"llama": '"parameters": {"expression": "', "qwen3": '<tool_call>\n{"name": "calculator", "arguments"'}[form]
calls = [r["tools/call_frequency"] for r in rows]
print(f"{form}: calls {calls}, wrong {[r['tools/failure_frequency'] for r in rows]}, given {[r['episodes/given_tokens'] for r in rows]}")
assert min(calls) > 0.2 and all(r["sampling/logp_difference/max"] == 0 for r in rows)
assert all(r["tools/failure_frequency"] < 0.9 and r["episodes/given_tokens"] > 1 for r in rows)
assert sum(mark in t for t in texts) > len(texts) / 5, texts[:3]
model = hf.AutoModelForCausalLM.from_pretrained(f"{form}-out")
print(f"{form}: {texts[0]!r}", type(model).__name__)
END
done
