#!/bin/sh
# Compares `rlhf-host inspect` with PyTorch's hooks (inspect_models.py). Skipped (77) if torch,
# transformers, tokenizers, peft or safetensors cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import torch, transformers, tokenizers, peft, safetensors' 2>/dev/null || {
    echo "skipped: $python lacks torch, transformers, tokenizers, peft or safetensors (-DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1
export HF_HUB_OFFLINE TOKENIZERS_PARALLELISM PYTHONDONTWRITEBYTECODE
"$python" -W ignore "$here/inspect_models.py" "$RLHF_BUILD_DIR/bin/rlhf-host" "$dir" 2>"$dir/log" || {
    cat "$dir/log"
    exit 1
}
