#!/bin/sh
# headers-first is made by save-headers: while the contract is v0, what lies there is what it writes.
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
