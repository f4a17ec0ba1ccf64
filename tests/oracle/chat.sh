#!/bin/sh
# Compares our chat templates with transformers' apply_chat_template (chat.py) or, as "chat.sh
# fragments", our Jinja with its own (fragments.py). Skipped (77) if transformers or tokenizers cannot
# be imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import transformers, tokenizers, jinja2' 2>/dev/null || {
    echo "skipped: $python has no transformers and jinja2 (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE TOKENIZERS_PARALLELISM
if [ "${1:-}" = fragments ]; then
    exec "$python" -W ignore "$here/fragments.py" "$RLHF_BUILD_DIR/tests/oracle_fragments"
fi
"$python" -W ignore "$here/chat.py" "$RLHF_BUILD_DIR/tests/oracle_conversation" "$dir"
