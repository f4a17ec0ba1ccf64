#!/bin/sh
# docs/reference matches the headers and describes every name. A header that was changed without
# docs/reference is detected.
set -eu
command -v python3 >/dev/null || exit 77
cd "$RLHF_SOURCE_DIR"
scripts/make-reference --check
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/docs" "$tmp/plugins/models/transformer"
cp -r scripts sdk kit "$tmp/"
cp -r docs/reference "$tmp/docs/"
cp plugins/models/transformer/core.h plugins/models/transformer/decoder.h "$tmp/plugins/models/transformer/"
sed -i 's/    uint8_t \*verdict;/    uint8_t *verdict, *another;/' "$tmp/sdk/include/rlhf/reward.h"
if "$tmp/scripts/make-reference" --check 2>"$tmp/said"; then
    echo "a new member went unnoticed" >&2
    exit 1
fi
grep -q 'docs/reference/reward.md is not what the headers say' "$tmp/said"
grep -q 'sdk/since.txt' "$tmp/said"
"$tmp/scripts/make-reference"
"$tmp/scripts/make-reference" --check
now=$(sed -nE 's/^#define RLHF_SDK_VERSION "([0-9]+\.[0-9]+).*/\1/p' sdk/include/rlhf/base.h)
grep -q "^rlhf_reward_out.another $now\$" "$tmp/sdk/since.txt"
