#!/bin/sh
# Compares the expectations of tests/algos/test_dpo.c with TRL's DPO trainer (dpo_loss.py).
# Skipped (77) if trl cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'from trl import DPOTrainer' 2>/dev/null || {
    echo "skipped: $python has no trl (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
"$python" "$here/dpo_loss.py" "$here/../algos/dpo_vectors.json"
