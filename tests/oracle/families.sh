#!/bin/sh
# Tests models of every family as transformers writes them. `families.sh heads` compares log-probs
# and gradients (families.py), `curve` 100 steps of AdamW (curve.py), and `update` recomputes a PPO
# and a GRPO update (recompute.py). Skipped (77) if torch, transformers or tokenizers cannot be
# imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import torch, transformers, tokenizers' 2>/dev/null || {
    echo "skipped: $python lacks torch, transformers or tokenizers (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
what=$1
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$python" "$here/families.py" make models 2>log || { cat log; exit 1; }
host() {
    "$RLHF_BUILD_DIR/bin/rlhf-host" "$@" --set compute.dtype=f32 --set log.progress=off --set log.level=warn \
        --threads 1
}
rollouts() {
    host "$@" --prompts prompts.txt --reward "$RLHF_BUILD_DIR/tests/e2e/bad_reward.so:every=1000" \
        --set batch.size=12 --set sampling.max_new_tokens=8 --set run.phases=2 --set checkpoint.every=1 \
        --set log.rollouts=true --set optim.eps=1e-5
}
status=0
if [ "$what" = heads ]; then
    "$python" "$here/families.py" check models "$RLHF_BUILD_DIR/tests/oracle_heads" 2>log || { cat log; status=1; }
    exit $status
fi
"$python" "$here/curve.py" rows >rows.jsonl
printf 'It was\nThe film\nI think\n' >prompts.txt
names=$("$python" "$here/families.py" names) # set -e ignores a failure in the list of a for
[ -n "$names" ] || { echo "families.py names no models"; exit 1; }
for name in $names; do
    if [ "$what" = curve ]; then
        host --algo sft.so --policy "models/$name" --data rows.jsonl --set run.dir="$name" --set run.phases=100 \
            --set prompts.prepend_bos=true --set batch.size=4 --set optim.lr=1e-4 --set optim.schedule=constant --set optim.beta2=0.95 \
            --set optim.eps=1e-5 --set optim.weight_decay=0.1 --set checkpoint.every=1000
        "$python" "$here/curve.py" "models/$name" "$name" 2>log || { cat log; status=1; }
    else
        rollouts --algo ppo.so --policy "models/$name" --set run.dir="$name-ppo" --set value.init=orthogonal
        rollouts --algo grpo.so:group_size=3,minibatches=2 --policy "models/$name" --set run.dir="$name-grpo"
        echo "$name"
        "$python" "$here/recompute.py" "$name-ppo" 2 "$name-grpo" 2 2>log || { cat log; status=1; }
    fi
done
exit $status
