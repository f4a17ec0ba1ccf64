#!/bin/sh
# Sends directories of transformers through the program and back (round_trip.py), and compares ids
# of adversarial texts (ids.py, check_forms.py). Skipped (77) if torch or transformers cannot be
# imported.
set -eu
python=${RLHF_PYTHON:-python3}
"$python" -c 'import torch, transformers' 2>/dev/null || {
    echo "skipped: $python has no torch and transformers (configure with -DRLHF_PYTHON=PATH)"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/trip" "$dir/ids"
HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export HF_HUB_OFFLINE TOKENIZERS_PARALLELISM
case ${1:-} in
trip) "$python" -W ignore "$here/round_trip.py" "$RLHF_BUILD_DIR/bin/rlhf-host" "$dir/trip" "$here/../../models/policy" ;;
ids) RLHF_TEXTS=200 "$python" "$here/ids.py" "$RLHF_BUILD_DIR/tests/oracle_encode" "$dir/ids" \
    "$RLHF_BUILD_DIR/tests/hf/dirs/gpt2" "$RLHF_BUILD_DIR/tests/hf/dirs/gpt2-classic-f16" "$RLHF_BUILD_DIR/tests/hf/dirs/gpt2-reward" \
    "$RLHF_BUILD_DIR/tests/hf/dirs/distilbert" "$here/../../models/classifier" ;;
forms) RLHF_TEXTS=20 "$python" "$here/check_forms.py" "$RLHF_BUILD_DIR/tests/oracle_encode" "$dir/ids" ;;
*)
    echo "usage: round_trip.sh trip | ids | forms"
    exit 2
    ;;
esac
