#!/bin/sh
# scripts/learn-sums, on the default policy: the rows, the reward, a run, and the two shares.
# test_learn_sums.sh SOURCE BUILD
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$1
export PATH="$2/bin:$PATH" CUDA_VISIBLE_DEVICES=
fail() {
    echo "$1" >&2
    cat "$work/log" >&2
    exit 1
}
cd "$work"
status=0
"$source/scripts/learn-sums" nosuch >log 2>&1 || status=$?
{ [ "$status" -eq 1 ] && grep -q 'nosuch is no GGUF file and no model directory' log; } || fail "a missing model"

# The base model needs a template. All responses are wrong, so no phase learns anything.
"$source/scripts/learn-sums" "$source/models/policy" sums --phases 2 --set prompts.template=plain \
    --set sampling.max_new_tokens=4 --set batch.size=8 >log 2>&1 || fail "exit status $?"
[ "$(wc -l <sums/heldout.jsonl)" -eq 33 ] || fail "held-out rows"
[ "$(cat sums/heldout.jsonl sums/train.jsonl | sort -u | wc -l)" -eq 100 ] || fail "all sums, once"
grep -q '^before  0.... of the answers to 33 held-out sums are right' log || fail "before"
grep -q '^after   0.... of the answers to 33 held-out sums are right' log || fail "after"
python3 - <<'PY'
import json, sys
sys.path.insert(0, "sums")
import rewards

def score(text, answer="11"):
    return rewards.right([[{"role": "assistant", "content": text}]], [answer])[0]

assert score("7 + 4 = 11.") == 1 and score("11") == 1
assert score("The sum is 11, as 5 + 6.") == 0 and score("111") == 0 and score("Eleven.") == 0
pairs = {}
for name in ("train", "heldout"):
    for line in open(f"sums/{name}.jsonl"):
        row = json.loads(line)
        a, b = row["messages"][0]["content"][len("What is ") : -1].split(" + ")
        assert int(row["answer"]) == int(a) + int(b), row
        pairs.setdefault(frozenset((a, b)), set()).add(name)
assert all(len(files) == 1 for files in pairs.values()), "a held-out sum is trained on"
PY
