#!/bin/bash
# Checks that every compiler and optimization level gives the hashes of golden.txt: builds the
# program with each combination, and runs golden.py.
#
#     compilers.sh DIR [ARGUMENTS OF golden.py]
#
# DIR gets the builds (some 500 MB). Exit status 1 if a hash differs.
set -eu
dir=${1:?"usage: compilers.sh DIR [ARGUMENTS OF golden.py]"}
shift
here=$(cd "$(dirname "$0")" && pwd)
bad=0
for compiler in gcc clang; do
    for level in -O1 -O3; do
        build=$dir/$compiler$level
        cmake -S "$here/../.." -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Dev -DCMAKE_C_COMPILER="$compiler" \
            -DCMAKE_C_FLAGS_DEV="$level -DNDEBUG" -DRLHF_TESTS=OFF -DRLHF_BENCH=OFF -DRLHF_CUDA=OFF \
            -DRLHF_MPI=OFF >"$build.log"
        cmake --build "$build" --target program >>"$build.log"
        echo "$compiler $level:"
        python3 "$here/golden.py" "$build" "$@" || bad=1
    done
done
exit $bad
