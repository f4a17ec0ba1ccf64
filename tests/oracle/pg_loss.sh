#!/bin/sh
# Compares the expectations of tests/algos/test_grpo_vectors.c with TRL's GRPO and GMPO trainers (pg_loss.py).
# Skipped (77) if trl or its GMPO trainer cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'from trl.experimental.gmpo import GMPOTrainer' 2>/dev/null || {
    echo "skipped: $python has no trl with GMPO (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
"$python" "$here/pg_loss.py" "$here/../algos/batch_vectors.json" "$here/../algos/grpo_vectors.jsonl"
