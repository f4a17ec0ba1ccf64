#!/bin/sh
# What RLHF_CUDA may be, and that a build without the CUDA backend leaves none from an earlier one.
# $1: the source tree
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
configure() { "$CMAKE" -S "$1" -B "$tmp/build" -G Ninja -DRLHF_TESTS=OFF -DRLHF_CUDA="$2" >"$tmp/log" 2>&1; }

if configure "$1" yes; then
    echo "RLHF_CUDA=yes was let pass" >&2
    exit 1
fi
grep -q 'RLHF_CUDA is "yes", allowed are AUTO, ON, OFF' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
old=$tmp/build/lib/rlhf/0/kernels/kernels_cuda.so
mkdir -p "$(dirname "$old")"
: >"$old"
configure "$1" OFF || { cat "$tmp/log" >&2; exit 1; }
grep -q 'CUDA backend: not built' "$tmp/log"
[ ! -e "$old" ] || { echo "$old is still there, and would be used" >&2; exit 1; }
