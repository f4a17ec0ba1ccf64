#!/usr/bin/env bash
# test_test_changed.sh SOURCE BUILD: tests which tests scripts/test-changed finds for a file of each
# kind.
set -euo pipefail
cd "$1"
build=$2
[ -e "$build/build.ninja" ] || exit 0
list() { scripts/test-changed --build "$build" --list --files "$@"; }
all=$(ctest --test-dir "$build" -N -LE '^(nightly|cuda)$' | tail -n 1 | tr -dc 0-9)

expect() { # FILE TEST ... with "-" before tests that must not be found
    local file=$1 found test
    shift
    found=$(list "$file")
    for test; do
        if grep -qx -- "${test#-}" <<<"$found"; then
            [[ $test != -* ]] || { echo "$file: finds ${test#-}"; exit 1; }
        else
            [[ $test = -* ]] || { echo "$file: does not find $test; found:" $found; exit 1; }
        fi
    done
}

# Through the build graph: a library, and a test's own source.
expect lib/formats/text/utf8.c text_utf8 test_e2e_rollout -base_json -test_kernels_rows
expect tests/text/test_utf8.c text_utf8 -text_bpe -test_e2e_rollout
# A plugin: its test, and the runs that name it.
expect plugins/rewards/ngram3.c test_ngram3 test_canaries golden_cli -test_answer -test_e2e_signal
expect kernels/cpu/product/muon.c test_kernels_optimizer test_e2e_rollout golden_cli -text_utf8
# By name: data, scripts, pages, build files.
expect tests/golden/cli/levels golden_cli -text_utf8
expect tests/hf/dirs.tar.gz hf_config -text_utf8
expect scripts/check-words scripts_check_words -scripts_check_circles
expect tests/text/CMakeLists.txt text_utf8 -base_file
for file in sdk/cmake/rlhf-deps.cmake something.new; do
    found=$(list $file | wc -l)
    [ "$found" = "$all" ] || { echo "$file: finds $found of $all tests"; exit 1; }
done
