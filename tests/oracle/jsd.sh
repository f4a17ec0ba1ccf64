#!/bin/sh
# Compares the divergences that opd.so minimizes with those of TRL's GKD trainer (jsd.py).
# Skipped (77) if trl, transformers or tokenizers cannot be imported.
set -eu
export TRL_EXPERIMENTAL_SILENCE=1
python=${RLHF_PYTHON:-python3}
"$python" -c 'import tokenizers; from trl.experimental.gkd import GKDTrainer' 2>/dev/null || {
    echo "skipped: $python lacks trl, transformers or tokenizers (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$python" "$here/jsd.py" "$dir" "$RLHF_BUILD_DIR/tests/oracle_heads" 2>"$dir/log" || { cat "$dir/log"; exit 1; }
