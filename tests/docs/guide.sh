#!/bin/sh
# Runs the ```sh blocks of docs/guide.md, in order, in one shell, with small numbers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$RLHF_SOURCE_DIR/docs/guide.md" >"$work/guide"
[ "$(grep -c rlhf-host "$work/guide")" -ge 9 ] || { echo "the guide has lost its commands" >&2; exit 1; }
sed -i '/^PATH=/d; s/--n 200 /--n 8 /; s/--n 256 /--n 8 /' "$work/guide"
cd "$RLHF_SOURCE_DIR"
head -n 8 models/passages.jsonl >"$work/texts.jsonl"
PATH="$RLHF_BUILD_DIR/bin:$PATH" TEXTS="$work/texts.jsonl" STEPS=1 PAIRS=16 PHASES=1 ITERATION=1 OUT="$work/out" sh -eux "$work/guide"
for run in sft reward grpo iterative; do
    [ -f "$work/out/$run/checkpoints/latest/model.safetensors" ] || { echo "$run left no checkpoint" >&2; exit 1; }
done
grep -q '"reward_model/fresh_after"' "$work/out/iterative/metrics.jsonl" || { echo "no round of the reward model" >&2; exit 1; }
