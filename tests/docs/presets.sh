#!/bin/sh
# Every preset states its source, can be resolved, and can run a phase on the default models. The
# batch has 32 rows, except for a preset whose groups have 64. The presets for chat models need rows
# and, for prompts, a reward.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
host=$RLHF_BUILD_DIR/bin/rlhf-host
cd "$work"
for a in 1 2 3 4 5 6; do
    echo '{"messages": [{"role": "user", "content": "It"}, {"role": "assistant", "content": " was"}]}' >>talks.jsonl
    echo '{"prompt": [{"role": "user", "content": "It"}], "chosen": [{"role": "assistant", "content": " was"}],
        "rejected": [{"role": "assistant", "content": " is"}]}' | tr -d '\n' >>pairs.jsonl
    echo >>pairs.jsonl
done
count=0
for file in "$RLHF_SOURCE_DIR"/configs/presets/*.json; do
    name=$(basename "$file" .json)
    "$host" --preset "$name" --print-config >"$name.json"
    python3 - "$file" "$name.json" <<'PY'
import json, sys
preset, resolved = (json.load(open(p)) for p in sys.argv[1:])
assert preset["run"]["note"], "no source"
def inside(a, b, path=""):
    for key, value in a.items():
        found = b[key]
        if isinstance(value, dict):
            inside(value, found, path + key + ".")
        elif key == "plugin":
            assert found.endswith(value), (path + key, found)
        elif isinstance(value, list):
            for x, y in zip(value, found):
                inside(x, y, path + key + ".")
        elif key != "path":
            assert found == value, f"{path}{key}: preset {value}, resolved {found}"
inside(preset, resolved)
PY
    size=batch.size=32
    case $name in
    deepseek-grpo) size=batch.size=64 ;;
    calculator-form) size=data.batch_tokens=512 ;; # learns from a file
    chat-sft | chat-dpo) size=batch.size=4 ;;
    esac
    weights=model.safetensors
    if [ "$name" = chat-lora ]; then weights=adapter_model.safetensors; fi
    set --
    case $name in
    chat-sft) set -- --data talks.jsonl --set prompts.template=plain ;;
    chat-dpo) set -- --data pairs.jsonl --set prompts.template=plain ;;
    chat-*) set -- --reward period_count.so ;;
    esac
    "$host" --preset "$name" "$@" --set "$size" --set run.stop_after=1 --set log.samples_every=0 \
        --set run.dir="$name" >"$name.log" 2>&1 || { cat "$name.log" >&2; exit 1; }
    tail -n 1 "$name/metrics.jsonl" | grep -q '^{"phase": *1,' || { cat "$name.log" >&2; exit 1; }
    [ -f "$name/checkpoints/000001/$weights" ]
    count=$((count + 1))
done
[ "$count" -eq 12 ]
