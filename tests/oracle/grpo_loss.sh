#!/bin/sh
# Compares the loss of a GRPO update with some cut-off responses with TRL's trainer (grpo_loss.py).
# Skipped (77) if trl cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'from trl import GRPOTrainer' 2>/dev/null || {
    echo "skipped: $python has no trl (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$python" "$here/tiny_model.py" model
printf 'It was\nThe film\nI think\n' >prompts.txt
runs=
for loss in grpo bnpo dr_grpo dapo cispo; do
    for mask in true false; do
        "$RLHF_BUILD_DIR/bin/rlhf-host" --policy model --set policy.init=random --prompts prompts.txt \
            --algo grpo.so:group_size=3,minibatches=1,epochs=1,kl_placement=none \
            --set algo.loss=$loss --set algo.mask_truncated=$mask \
            --reward "$RLHF_BUILD_DIR/tests/e2e/bad_reward.so:every=1000" --set batch.size=12 \
            --set sampling.max_new_tokens=8 --set "sampling.stop=[$(seq -s, 60 90)]" \
            --set run.phases=1 --set log.rollouts=true --set log.progress=off --set log.level=warn \
            --set compute.dtype=f32 --threads 1 --set run.dir=$loss-$mask
        runs="$runs $loss-$mask"
        "$RLHF_BUILD_DIR/bin/rlhf-host" --policy model --set policy.init=random --prompts prompts.txt \
            --algo grpo.so:group_size=3,minibatches=1,epochs=1,kl_placement=none \
            --set algo.loss=$loss --set algo.mask_truncated=$mask --env guess.so:most=3 --set episodes.turns=3 \
            --reward "$RLHF_BUILD_DIR/tests/e2e/bad_reward.so:every=1000" --set batch.size=12 \
            --set sampling.max_new_tokens=6 --set "sampling.stop=[$(seq -s, 60 90)]" \
            --set run.phases=1 --set log.rollouts=true --set log.progress=off --set log.level=warn \
            --set compute.dtype=f32 --threads 1 --set run.dir=$loss-$mask-turns
        runs="$runs $loss-$mask-turns"
    done
done
# shellcheck disable=SC2086
"$python" "$here/grpo_loss.py" $runs
