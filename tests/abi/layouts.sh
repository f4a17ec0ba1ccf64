#!/bin/sh
# The structs have the offsets and sizes of sdk/layout.txt on each kind of machine that the contract
# is for. clang compiles the assertions for each of them, without its C library. A 32-bit machine is
# refused.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
include=$RLHF_SOURCE_DIR/sdk/include
awk -f "$RLHF_SOURCE_DIR/tests/abi/asserts.awk" "$RLHF_SOURCE_DIR/sdk/layout.txt" >"$tmp/asserts.c"
[ "$(grep -c '^_Static_assert' "$tmp/asserts.c")" -gt 500 ] || { echo "too few assertions" >&2; exit 1; }
"$CC" -std=c11 -I"$include" -fsyntax-only "$tmp/asserts.c" # this machine, with its C library
# The assertions can fail.
sed -E '0,/== 8 &&/s//== 12 \&\&/' "$tmp/asserts.c" >"$tmp/wrong.c"
! "$CC" -std=c11 -I"$include" -fsyntax-only "$tmp/wrong.c" 2>"$tmp/log" || { echo "a wrong offset compiles" >&2; exit 1; }

command -v clang >/dev/null || { echo "clang is not installed: only this machine's layout was tested"; exit 0; }
# What the headers use of the C library.
mkdir "$tmp/libc"
echo 'void *memcpy(void *, const void *, __SIZE_TYPE__); void *memset(void *, int, __SIZE_TYPE__);
int memcmp(const void *, const void *, __SIZE_TYPE__); __SIZE_TYPE__ strlen(const char *);' >"$tmp/libc/string.h"
echo 'int vsnprintf(char *, __SIZE_TYPE__, const char *, __builtin_va_list);' >"$tmp/libc/stdio.h"
echo '#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")' >"$tmp/libc/math.h"
builtin=$(clang -print-resource-dir)/include
compile() { # target, file
    clang --target="$1" -std=c11 -ffreestanding -nostdinc -isystem "$builtin" -isystem "$tmp/libc" -I"$include" \
        -w -fsyntax-only "$2"
}
for target in x86_64-linux-gnu aarch64-linux-gnu riscv64-linux-gnu arm64-apple-macos x86_64-windows-msvc \
    x86_64-w64-mingw32 aarch64-windows-msvc; do
    compile $target "$tmp/asserts.c" >"$tmp/log" 2>&1 || {
        echo "on $target, the layout is not that of sdk/layout.txt:" >&2
        head -20 "$tmp/log" >&2
        exit 1
    }
    ! compile $target "$tmp/wrong.c" >"$tmp/log" 2>&1 || { echo "a wrong offset compiles for $target" >&2; exit 1; }
done
echo '#include <rlhf/reward.h>' >"$tmp/small.c"
for target in i686-linux-gnu armv7-linux-gnueabihf wasm32; do
    ! compile $target "$tmp/small.c" >"$tmp/log" 2>&1 || { echo "a header compiles for $target" >&2; exit 1; }
    grep -q 'for 64-bit machines' "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
done
