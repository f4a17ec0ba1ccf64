#!/bin/sh
# save-headers writes headers-first. While the contract is v0, that directory must equal its output.
set -eu
cd "$RLHF_SOURCE_DIR"
command -v clang-format-14 >/dev/null || exit 77
grep -q '^#define RLHF_ABI_MAJOR *0 ' sdk/include/rlhf/base.h || exit 0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tests/abi/save-headers "$tmp/now"
if ! diff -r tests/abi/headers-first "$tmp/now" >&2; then
    echo "tests/abi/headers-first is not what the headers give; run tests/abi/save-headers" >&2
    exit 1
fi
