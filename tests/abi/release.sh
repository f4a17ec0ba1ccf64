#!/bin/sh
# scripts/make-museum releases the contract's version, in a copy of what it reads: it keeps plugins of each
# kind, and check-abi accepts what it leaves. A version is released once.
set -eu
[ "$(uname -m)" = x86_64 ] || { echo "binaries for x86-64 are made on x86-64"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/tests/abi" "$tmp/tests/museum"
cp -r "$RLHF_SOURCE_DIR/scripts" "$RLHF_SOURCE_DIR/sdk" "$tmp/"
cp "$RLHF_SOURCE_DIR"/tests/abi/*.awk "$tmp/tests/abi/"
cp "$RLHF_SOURCE_DIR/tests/museum/services.c" "$tmp/tests/museum/"
echo open >"$tmp/sdk/ABI-HISTORY"
version=$(sed -nE 's/^#define RLHF_ABI_(MAJOR|MINOR) +([0-9]+).*/\2/p' "$tmp/sdk/include/rlhf/base.h" | paste -sd.)
"$tmp/scripts/make-museum" "$RLHF_BUILD_DIR" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
[ "$(cat "$tmp/sdk/ABI-HISTORY")" = "released $version" ] || { cat "$tmp/sdk/ABI-HISTORY" >&2; exit 1; }
"$tmp/scripts/check-abi" >/dev/null
for plugin in reward algo sink environment curriculum services; do
    [ -s "$tmp/tests/museum/$version/x86_64-gcc/$plugin.so" ] || { echo "the museum has no $plugin.so" >&2; exit 1; }
done
! "$tmp/scripts/make-museum" "$RLHF_BUILD_DIR" >"$tmp/log" 2>&1 || { echo "a version is released twice" >&2; exit 1; }
grep -q 'are never made again' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
