#!/bin/sh
# Compares rows of one completion with TRL's KTO trainer (kto_rows.py). Skipped (77) if trl, datasets or
# tokenizers cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import datasets, tokenizers; from trl import KTOTrainer' 2>/dev/null || {
    echo "skipped: $python has no trl (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false HF_HOME=$dir/hub HF_DATASETS_DISABLE_PROGRESS_BARS=1
export HF_HUB_OFFLINE TOKENIZERS_PARALLELISM HF_HOME HF_DATASETS_DISABLE_PROGRESS_BARS
"$python" -W ignore "$here/kto_rows.py" "$RLHF_BUILD_DIR/tests/oracle_completions" "$dir"
