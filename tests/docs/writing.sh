#!/bin/sh
# Runs the ```sh blocks of docs/writing-a-plugin.md in order, in one shell, as a new author would:
# from an installed prefix, in a separate directory. Then an uninterrupted run must give the same
# bytes as the run that the page resumes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$RLHF_SOURCE_DIR/docs/writing-a-plugin.md" >"$work/page"
[ "$(grep -c rlhf-host "$work/page")" -ge 8 ] || { echo "the page has lost its commands" >&2; exit 1; }
sed -i 's/^rlhf-host --algo ppo.so .*/& --phases 1 --set batch.size=8 --set algo.minibatches=1 --set sampling.max_new_tokens=4/' "$work/page"
mkdir "$work/build"
ln -s "$RLHF_BUILD_DIR" "$work/build/release"
cd "$work"
cat >>page <<'END'
rlhf-host --algo baseline.so:warm=true --reward gold.so:rare=0.5 --prompts rows.jsonl --phases 4 --out whole \
    --set batch.size=8 --set sampling.max_new_tokens=8 --set optim.schedule_phases=4
diff -r begun/checkpoints/000004 whole/checkpoints/000004
# An author's mistakes cause clear messages: a missing key in the rows, or missing rows.
says() { # sentence, arguments
    want=$1
    shift
    if rlhf-host --algo my_algo.so --set batch.size=4 --set sampling.max_new_tokens=4 --phases 1 "$@" >said 2>&1; then exit 1; fi
    grep -q "$want" said || { cat said >&2; exit 1; }
}
says 'the data row has no "solution"' --reward gold.so:key=solution --prompts rows.jsonl --out a
says 'there is no data row' --reward gold.so --set prompts.text=It --out b
END
unset XDG_DATA_HOME RLHF_PLUGIN_PATH
HOME=$work sh -eu page >log 2>&1 || { cat log >&2; exit 1; }
