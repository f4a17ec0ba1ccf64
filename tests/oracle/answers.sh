#!/bin/sh
# Compares answer.so on 2,000 generated answers with the truth and, if installed, math-verify
# (answers.py). Skipped (77) without Python.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import json' 2>/dev/null || {
    echo "skipped: no $python"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
"$python" -W ignore "$here/answers.py" "$RLHF_BUILD_DIR/tests/oracle_rewards" \
    "$RLHF_BUILD_DIR/lib/rlhf/0/rewards"
