#!/bin/sh
# Man pages and completions: every command has a page with all of its flags, the formatter reports
# no errors, and bash completes the entries of the tables.
set -eu
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
host=$RLHF_BUILD_DIR/bin/rlhf-host
"$RLHF_SOURCE_DIR/scripts/make-manual" "$host" "$tmp"
for command in generate eval label pairs export plugin devices report runs; do
    page=$tmp/man1/rlhf-host-$command.1
    [ -s "$page" ] || { echo "there is no page of $command" >&2; exit 1; }
    "$host" help $command | sed -nE 's/^  (--[a-z-]+).*/\1/p' >"$tmp/flags"
    [ -s "$tmp/flags" ] || { echo "$command has no flags" >&2; exit 1; }
    while read -r flag; do
        grep -qF "\\fB$(echo "$flag" | sed 's/-/\\-/g')\\fR" "$page" || { echo "the page of $command lacks $flag" >&2; exit 1; }
        for shell in bash/rlhf-host zsh/_rlhf-host; do
            grep -qF -e "$flag" "$tmp/$shell" || { echo "$shell lacks $flag of $command" >&2; exit 1; }
        done
    done <"$tmp/flags"
done
grep -q 'sampling.max_new_tokens' "$tmp/man7/rlhf-host-settings.7"
grep -q '\\fB\\-\\-reward\\fR \\fIX.so' "$tmp/man1/rlhf-host.1"
if command -v groff >/dev/null; then
    for page in "$tmp"/man1/*.1 "$tmp"/man7/*.7; do
        said=$(groff -man -Tascii -ww -z "$page" 2>&1 || true)
        [ -z "$said" ] || { echo "$page: $said" >&2; exit 1; }
    done
fi
command -v bash >/dev/null || exit 0
cat >"$tmp/try" <<'END'
. "$1/bash/rlhf-host"
compopt() { :; }
try() { # words of a command line, the last one being completed
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _rlhf_host
    echo "${COMPREPLY[*]}"
}
try rlhf-host ge
try rlhf-host --alg
try rlhf-host --vers
try rlhf-host generate --gr
try rlhf-host plugin n
try rlhf-host runs pr
try rlhf-host runs list --w
try rlhf-host --set sampling.max_n
try rlhf-host help set
END
PATH=$RLHF_BUILD_DIR/bin:$PATH bash "$tmp/try" "$tmp" >"$tmp/said"
cat >"$tmp/want" <<'END'
generate
--algo
--version
--greedy
new
prune
--watch
sampling.max_new_tokens=
settings
END
diff "$tmp/want" "$tmp/said"
! command -v zsh >/dev/null || zsh -n "$tmp/zsh/_rlhf-host"
