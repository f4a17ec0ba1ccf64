#!/bin/sh
# Models of every family as transformers writes them: log-probs and gradients (families.py). Skipped
# (77) where torch, transformers or tokenizers can not be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import torch, transformers, tokenizers' 2>/dev/null || {
    echo "skipped: $python lacks torch, transformers or tokenizers (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$python" "$here/families.py" make "$dir"
"$python" "$here/families.py" check "$dir" "$RLHF_BUILD_DIR/tests/oracle_heads"
