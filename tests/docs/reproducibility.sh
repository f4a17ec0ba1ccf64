#!/bin/sh
# Runs the ```sh blocks of docs/reproducibility.md, in order, with a small run.
set -eu
page="$RLHF_SOURCE_DIR/docs/reproducibility.md"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$page" >"$work/commands"
[ "$(grep -c 'rlhf-host' "$work/commands")" -ge 7 ] || { echo "the page has lost its commands" >&2; exit 1; }
cd "$work"
PATH="$RLHF_BUILD_DIR/bin:$PATH" PHASES=2 ROWS=8 sh -eux commands >said
[ "$(grep -c '^phase 2: equal to the bit' said)" = 3 ]
grep -q '"checkpoint": ' said
grep -q '^receipt.json is unchanged and belongs to the run: the run is equal to the bit' said
