#!/usr/bin/env bash
# Without libabigail, scripts/check-abi fails or returns the status for "skipped".
#   test_check_abi.sh SOURCE_DIR
set -uo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ln -s "$(command -v dirname)" "$tmp/dirname" # needed before check-abi looks for the tool
fails=0
expect() { # exit status, name of what is set or not
    local said status
    said=$(PATH=$tmp "$BASH" "$check" 2>&1)
    status=$?
    if [ $status -ne "$1" ] || ! [[ $said == *"abigail-tools"* ]]; then
        printf '%s: exit status %s, not %s\n%s\n' "$2" $status "$1" "$said"
        fails=$((fails + 1))
    fi
}
check=$1/scripts/check-abi
unset RLHF_SKIP
expect 1 "by itself"
export RLHF_SKIP=77
expect 77 "as a test that may be skipped"
exit $((fails > 0))
