#!/bin/sh
# The layout test can fail: a field inserted in the middle of a struct must turn it red, and the
# unpatched headers must not.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -r "$RLHF_SOURCE_DIR/sdk/include" "$tmp/include"
build() {
    "$CC" -std=c11 -D_GNU_SOURCE -I"$tmp/include" "$RLHF_SOURCE_DIR/tests/abi/test_offsets.c" \
        -lcmocka -o "$tmp/offsets"
}
build
"$tmp/offsets" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
sed -i 's/^    uint64_t phase;$/    uint64_t intruder;\n    uint64_t phase;/' "$tmp/include/rlhf/reward.h"
grep -q intruder "$tmp/include/rlhf/reward.h"
build
if "$tmp/offsets" >"$tmp/log" 2>&1; then
    echo "an inserted field went unnoticed" >&2
    exit 1
fi
