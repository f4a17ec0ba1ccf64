#!/usr/bin/env bash
# scripts/check-circles on three small trees: one clean, one with a circle of three files, one with
# a cycle of three rooms.
#   test_check_circles.sh SOURCE_DIR
set -uo pipefail
check=$1/scripts/check-circles
trees=$1/tests/scripts/circles
fails=0
expect() { # tree, exit status, lines that the output must have, one each
    local tree=$1 want=$2 said status line
    shift 2
    said=$("$check" "$trees/$tree" 2>&1)
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
expect clean 0 "circles: none"
expect three 1 "circle in host/a: host/a/first, host/a/second, host/a/third" \
    "    host/a/first -> host/a/second: second_of" \
    "    host/a/second -> host/a/third: THIRD" \
    "    host/a/third -> host/a/first: first"
expect rooms 1 "cycle between rooms: host/a, host/b, host/c" \
    "    host/a -> host/c: host/a/up down_of" \
    "    host/b -> host/a: host/b/mid up_call" \
    "    host/c -> host/b: host/c/down MID_CALL, host/c/down mid"
exit $((fails > 0))
