#!/bin/sh
# What tests/algos/test_dpo.c expects is what TRL's DPO trainer computes (dpo_loss.py). Skipped (77)
# where trl can not be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'from trl import DPOTrainer' 2>/dev/null || {
    echo "skipped: $python has no trl (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
"$python" "$here/dpo_loss.py" "$here/../algos/dpo_vectors.h"
