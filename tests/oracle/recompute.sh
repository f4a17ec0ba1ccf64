#!/bin/sh
# Runs recompute.py on one PPO and three GRPO updates of a tiny random policy, two of them with
# masked responses. It must also detect a run whose file was tampered with. Skipped (77) if torch
# cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || {
    echo "skipped: $python has no torch (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$python" "$here/tiny_model.py" model
printf 'It was\nThe film\nI think\n' >prompts.txt
run() {
    "$RLHF_BUILD_DIR/bin/rlhf-host" "$@" --policy model --set policy.init=random --prompts prompts.txt \
        --reward "$RLHF_BUILD_DIR/tests/e2e/bad_reward.so:every=1000" --set batch.size=12 \
        --set sampling.max_new_tokens=8 --set run.phases=2 --set checkpoint.every=1 \
        --set log.rollouts=true --set log.progress=off --set log.level=warn \
        --set compute.dtype=f32 --threads 1
}
run --algo ppo.so --set run.dir=ppo --set value.init=orthogonal --set algo.entropy_coef=0.01 \
    --set algo.whiten_scope=minibatch --set sampling.temperature=0.7 --set optim.weight_decay=0.01
run --algo grpo.so:group_size=3 --set run.dir=grpo --set optim.epsilon=tf1 --set optim.eps=1e-5
run --algo grpo.so:group_size=3,mask_truncated=true,loss=dapo,kl_placement=none --set run.dir=mask \
    --set "sampling.stop=[$(seq -s, 60 90)]" # of 258 ids: some responses end, some are cut off
run --algo grpo.so:group_size=3,mask_truncated=true,loss=bnpo,kl_placement=none --set run.dir=bnpo \
    --set "sampling.stop=[$(seq -s, 60 90)]"
grep -q '"masked": \[' mask/rollouts.jsonl
grep -q '"masked": \[' bnpo/rollouts.jsonl
"$python" "$here/recompute.py" ppo 2 grpo 2 mask 2 bnpo 2

cp -r ppo wrong
sed 's/"phase": 2, "row": 3,\(.*\)"score": 0/"phase": 2, "row": 3,\1"score": 0.5/' ppo/rollouts.jsonl >wrong/rollouts.jsonl
if cmp -s ppo/rollouts.jsonl wrong/rollouts.jsonl; then
    echo "the file was not tampered with"
    exit 1
fi
"$python" "$here/recompute.py" wrong 2 && status=0 || status=$?
test "$status" = 1
