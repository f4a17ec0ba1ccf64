#!/usr/bin/env bash
# Tests scripts/check-circles on small trees that are compiled here: a tree without cycles, cycles
# of three files, and cycles of rooms. Each cycle is caused by a kind of symbol or include that a
# check could overlook.
#   test_check_circles.sh SOURCE_DIR
set -uo pipefail
check=$1/scripts/check-circles
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fails=0

put() { # TREE FILE CODE
    mkdir -p "$tmp/$1/$(dirname "$2")"
    printf '%s\n' "$3" >"$tmp/$1/$2"
}

build() { # TREE: compiles the tree and records the commands, as CMake does
    local file object comma=
    mkdir -p "$tmp/$1/build"
    printf '[' >"$tmp/$1/build/compile_commands.json"
    for file in $(cd "$tmp/$1" && find . -name '*.c' | sort); do
        file=${file#./}
        object=$(tr / _ <<<"$file").o
        ${CC:-cc} -O2 -I "$tmp/$1/host" -c -o "$tmp/$1/build/$object" "$tmp/$1/$file" || exit 1
        printf '%s{"directory": "%s", "file": "%s", "command": "cc -o %s -c x"}' "$comma" \
            "$tmp/$1/build" "$tmp/$1/$file" "$object" >>"$tmp/$1/build/compile_commands.json"
        comma=,
    done
    printf ']' >>"$tmp/$1/build/compile_commands.json"
}

expect() { # TREE, exit status, lines that the output must have, one each
    local tree=$1 want=$2 said status line
    shift 2
    build "$tree"
    said=$("$check" --root "$tmp/$tree" "$tmp/$tree/build" 2>&1)
    status=$?
    if [ $status -ne "$want" ]; then
        printf '%s: exit status %s, not %s\n%s\n' "$tree" $status "$want" "$said"
        fails=$((fails + 1))
    fi
    for line in "$@"; do
        if ! grep -qxF -- "$line" <<<"$said"; then
            printf '%s: no line "%s" in\n%s\n' "$tree" "$line" "$said"
            fails=$((fails + 1))
        fi
    done
}

# Two nouns may use each other. Static functions of one name are distinct. If two parts define a
# name, the nearer definition counts.
put clean host/a/one.c 'int two(int); static int helper(int x) { return x + 1; }
int one(int n) { return n ? two(n - 1) : helper(n); }'
put clean host/a/two.c 'int one(int); int shared(void); static int helper(int x) { return x; }
int two(int n) { return one(n) + helper(n) + shared(); }'
put clean host/a/shared.c 'int shared(void) { return 1; }'
put clean kernels/x.c 'int shared(void); int use(void) { return shared(); }'
put clean kernels/shared.c 'int shared(void) { return 2; }'
expect clean 0 "circles: none"

# A cycle of three uses: of a function that contains a static table, of a variable, and of a
# function through a pointer.
put three host/a/first.c 'int second(int);
int first(int n) { static const int table[] = {1, 2}; return second(table[n & 1]); }'
put three host/a/second.c 'extern const int third_table[]; int second(int n) { return third_table[n]; }'
put three host/a/third.c 'int first(int);
const int third_table[] = {1, 2, 3}; int (*const third_call)(int) = first;'
expect three 1 "circle in host/a: host/a/first, host/a/second, host/a/third" \
    "    host/a/first -> host/a/second: second" \
    "    host/a/second -> host/a/third: third_table" \
    "    host/a/third -> host/a/first: first"

# A lower part that uses a higher part.
put upward lib/core/base/low.c 'int high(void); int low(void) { return high(); }'
put upward host/run/high.c 'int high(void) { static int calls; return ++calls; }'
expect upward 1 "arrow upward: lib/core/base/low -> host/run/high: high"

# The rooms use each other only through functions with a static local.
put rooms host/a/up.c 'int down(int);
int up(int n) { static const int t[] = {3, 4}; return n ? down(n) + t[n & 1] : t[0]; }'
put rooms host/b/mid.c 'int up(int); int mid(int n) { static int calls; return up(n) + ++calls; }'
put rooms host/c/down.c 'int mid(int); int down(int n) { static int calls; return mid(n - 1) + ++calls; }'
expect rooms 1 "cycle between rooms: host/a, host/b, host/c" \
    "    host/a -> host/c: host/a/up down" \
    "    host/b -> host/a: host/b/mid up" \
    "    host/c -> host/b: host/c/down mid"

# A cycle between a top-level folder and a folder of host.
put parts kernels/k.c 'int from_host(void); int from_kernel(void) { return from_host(); }'
put parts host/h/h.c 'int from_kernel(void); int from_host(void) { return from_kernel(); }'
expect parts 1 "cycle between rooms: host/h, kernels"

# Headers that include each other's nouns: from the same folder, from the part, and from the folder
# above. Headers alone count; of two nouns, each may include the other; a .c file may include itself.
put pair host/a/one.c '#include "a/one.h"
#include "a/two.h"'
put pair host/a/one.h ''
put pair host/a/two.h '#include "one.h"'
expect pair 0 "circles: none"
put includes host/a/one.c '#include "a/one.h"
#include "two.h"'
put includes host/a/one.h ''
put includes host/a/two.h '#include "a/three.h"'
put includes host/a/three.h ''
put includes host/a/three.c '  #  include "one.h"'
expect includes 1 "circle in host/a by include: host/a/one, host/a/three, host/a/two" \
    "    host/a/one -> host/a/two: one.c includes two.h" \
    "    host/a/three -> host/a/one: three.c includes one.h" \
    "    host/a/two -> host/a/three: two.h includes a/three.h"
if said=$("$check" --root "$tmp/includes" --includes 2>&1) || [[ $said != *"circle in host/a by include"* ]]; then
    printf 'without a build: %s\n' "$said"
    fails=$((fails + 1))
fi
put levels host/a/one.h '#include "b/two.h"'
put levels host/b/two.h ''
put levels host/b/sub/three.h '#include "a/one.h"'
put levels host/b/two.c '#include "sub/three.h"'
expect levels 1 "cycle between rooms by include: host/a, host/b, host/b/sub" \
    "    host/b/sub -> host/a: host/b/sub/three three.h includes a/one.h"

# A room of 20 nouns, and one of 21.
for i in {1..20}; do put full host/a/n$i.c "int n$i(void); int n$i(void) { return $i; }"; done
put full host/a/alone.h 'int n1(void);'
expect full 0 "circles: none"
put full host/a/n21.c 'int n21(void); int n21(void) { return 21; }'
expect full 1 "host/a has 21 nouns, at most 20 are allowed: move some, or make a second room"

if "$check" --root "$tmp/clean" "$tmp" >/dev/null 2>&1; then
    echo "a directory that no build has made passes"
    fails=$((fails + 1))
fi
exit $((fails > 0))
