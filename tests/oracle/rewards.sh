#!/bin/sh
# Compares answer.so, format.so, length.so and ngram3.so with the functions of TRL's `rewards`
# (rewards.py). Skipped (77) if trl cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import trl.rewards' 2>/dev/null || {
    echo "skipped: $python has no trl (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
HF_HUB_OFFLINE=1 "$python" -W ignore "$here/rewards.py" "$RLHF_BUILD_DIR/tests/oracle_rewards" \
    "$RLHF_BUILD_DIR/lib/rlhf/0/rewards"
