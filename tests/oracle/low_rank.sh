#!/bin/sh
# Compares low-rank adapters with PEFT (low_rank.py): log-probs, gradients, merged weights and 20
# steps of AdamW, for four families with two sets of targets each. Skipped (77) if torch,
# transformers, tokenizers or peft cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import torch, transformers, tokenizers, peft' 2>/dev/null || {
    echo "skipped: $python lacks torch, transformers, tokenizers or peft (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
status=0
"$python" "$here/low_rank.py" make "$dir/models" 2>log || { cat log; exit 1; }
"$python" "$here/low_rank.py" check "$dir/models" "$RLHF_BUILD_DIR/tests/oracle_heads" 2>log || { cat log; status=1; }
"$python" "$here/curve.py" rows >rows.jsonl
names=$("$python" "$here/low_rank.py" names) # set -e ignores a failure in the list of a for
[ -n "$names" ] || { echo "low_rank.py names no models"; exit 1; }
for name in $names; do
    "$RLHF_BUILD_DIR/bin/rlhf-host" export "models/$name" --merge --to "$name-merged" >log 2>&1 || { cat log; exit 1; }
    "$python" "$here/low_rank.py" merged "models/$name" "$name-merged" 2>log || { cat log; status=1; }
    "$RLHF_BUILD_DIR/bin/rlhf-host" --algo sft.so --policy "models/$name" --data rows.jsonl --set run.dir="$name" \
        --set prompts.prepend_bos=true --set run.phases=20 --set batch.size=4 --set optim.lr=1e-3 --set optim.schedule=constant \
        --set optim.beta2=0.95 --set optim.eps=1e-5 --set optim.weight_decay=0.1 --set checkpoint.every=20 \
        --set compute.dtype=f32 --set log.progress=off --set log.level=warn --threads 1 >log 2>&1 || { cat log; exit 1; }
    "$python" "$here/low_rank.py" trained "models/$name" "$name" 2>log || { cat log; status=1; }
done
exit $status
