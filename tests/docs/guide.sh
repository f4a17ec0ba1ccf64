#!/bin/sh
# Runs the ```sh blocks of docs/guide.md, in order, in one shell, with small numbers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$RLHF_SOURCE_DIR/docs/guide.md" >"$work/guide"
[ "$(grep -c rlhf-host "$work/guide")" -ge 9 ] || { echo "the guide has lost its commands" >&2; exit 1; }
sed -i '/^PATH=/d; s/--n 200 /--n 24 /; s/--n 256 /--n 16 /' "$work/guide"
cd "$RLHF_SOURCE_DIR"
PATH="$RLHF_BUILD_DIR/bin:$PATH" STEPS=2 PAIRS=48 PHASES=2 OUT="$work/out" sh -eux "$work/guide"
for run in sft reward grpo iterative; do
    [ -f "$work/out/$run/checkpoints/latest/model.safetensors" ] || { echo "$run left no checkpoint" >&2; exit 1; }
done
