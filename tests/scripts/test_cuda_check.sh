#!/bin/sh
# bench/cuda-check on a machine without a card: it prints the reason, and does not write a report
# full of failures.
# $1: the source tree
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0
RLHF_FAKE_CUDA=driver=0 "$1/bench/cuda-check" --emulated --build "$RLHF_BUILD_DIR" --out "$tmp/report.md" \
    >"$tmp/log" 2>&1 || status=$?
[ $status = 1 ] || { echo "status $status, 1 is expected" >&2; cat "$tmp/log" >&2; exit 1; }
grep -q '^cuda-check: there is no NVIDIA driver' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
[ ! -e "$tmp/report.md" ] || { echo "a report was written" >&2; exit 1; }
