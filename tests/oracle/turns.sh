#!/bin/sh
# Compares the ids of episodes with transformers' ids of the whole conversations (turns.py), for
# RLHF_BRIDGE_TURNS turns of random text. RLHF_BRIDGE_STATE names a file with which an interrupted
# comparison continues. Skipped (77) if transformers or tokenizers cannot be imported.
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
"$python" -W ignore "$here/turns.py" "$RLHF_BUILD_DIR/tests/oracle_turns" "$dir" \
    "${RLHF_BRIDGE_TURNS:-20000}" ${RLHF_BRIDGE_STATE:+"$RLHF_BRIDGE_STATE"}
