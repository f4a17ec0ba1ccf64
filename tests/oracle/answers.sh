#!/bin/sh
# Compares answer.so on 2,000 generated answers (answers.py) and 3,000 of hard forms
# (answer_forms.py) with the truth and, if installed, with math-verify. Skipped (77) without Python.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import json' 2>/dev/null || {
    echo "skipped: no $python"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
for script in answers.py answer_forms.py; do
    "$python" -W ignore "$here/$script" "$RLHF_BUILD_DIR/tests/oracle_rewards" \
        "$RLHF_BUILD_DIR/lib/rlhf/0/rewards"
done
