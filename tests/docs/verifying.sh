#!/bin/sh
# Runs the ```sh and ```python blocks of docs/verifying.md, in order, with a small run.
set -eu
page="$RLHF_SOURCE_DIR/docs/verifying.md"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$page" >"$work/commands"
awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' "$page" >"$work/heads.py"
[ "$(grep -c '^rlhf-host' "$work/commands")" -ge 6 ] || { echo "the page has lost its commands" >&2; exit 1; }
cd "$work"
PATH="$RLHF_BUILD_DIR/bin:$PATH" PHASES=2 ROWS=8 sh -eux commands >said
grep -q '^2 of 2 phases are equal to the bit' said
grep -q '^receipt.json is unchanged and belongs to the run: the run is equal to the bit' said
[ "$(python3 heads.py)" = "$(sed -n 's/^head of the chain: //p' said | tail -n 1)" ]
# An edited chain is found without rlhf-host, too.
sed -i '4s/"rows": "./"rows": "x/' mine/chain.jsonl
! python3 heads.py 2>/dev/null
