#!/bin/sh
# Compares the expectations of tests/algos/test_bradley_terry.c with TRL's reward trainer (bt_loss.py).
# Skipped (77) if trl cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'from trl import RewardTrainer' 2>/dev/null || {
    echo "skipped: $python has no trl (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
"$python" "$here/bt_loss.py" "$here/../algos/bt_vectors.json"
