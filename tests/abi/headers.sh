#!/bin/sh
# Every public header compiles alone, as C11 and as C++11 to C++20, without a padding hole or a warning.
set -eu
include=$RLHF_SOURCE_DIR/sdk/include
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
flags="-Wall -Wextra -Wpedantic -Wshadow -Wcast-qual -Wvla -Wconversion -Wpadded -Werror"
for header in "$include"/rlhf/*.h "$include"/rlhf/draft/*.h "$RLHF_SOURCE_DIR"/sdk/kit/include/rlhf/test.h; do
    name=${header#*/include/}
    printf '#include <%s>\n' "$name" >"$tmp/one.c"
    cp "$tmp/one.c" "$tmp/one.cc"
    # test.h is for programs that may use POSIX
    "$CC" -std=c11 -D_GNU_SOURCE -Wstrict-prototypes -Wmissing-prototypes $flags -I"$include" -I"$RLHF_SOURCE_DIR/sdk/kit/include" \
        -fsyntax-only "$tmp/one.c" || { echo "$name does not compile as C11" >&2; exit 1; }
    [ -n "$CXX" ] || continue
    case $CXX in *NOTFOUND) continue ;; esac
    for std in 11 14 17 20; do
        "$CXX" -std=c++$std $flags -I"$include" -I"$RLHF_SOURCE_DIR/sdk/kit/include" -fsyntax-only "$tmp/one.cc" ||
            { echo "$name does not compile as C++$std" >&2; exit 1; }
    done
done
