#!/bin/sh
# Checks exports of every family with transformers and llama.cpp's reader (export.py). Skipped (77) if
# torch, transformers, tokenizers or gguf cannot be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import torch, transformers, tokenizers, gguf' 2>/dev/null || {
    echo "skipped: $python lacks torch, transformers, tokenizers or gguf (-DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE TOKENIZERS_PARALLELISM
"$python" -W ignore "$here/export.py" "$RLHF_BUILD_DIR/bin/rlhf-host" "$dir"
