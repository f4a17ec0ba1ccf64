#!/usr/bin/env bash
# test_quickstart.sh SOURCE: what ./quickstart starts, with what it builds and installs left out.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/scripts" "$dir/build/release/bin" "$dir/path"
cp "$1/quickstart" "$dir/"
for program in scripts/install-deps path/cmake; do
    printf '#!/bin/sh\nexit 0\n' >"$dir/$program"
done
printf '#!/bin/sh\nfor a; do printf "<%%s>" "$a"; done\n' >"$dir/build/release/bin/rlhf-host"
chmod +x "$dir"/scripts/* "$dir"/path/* "$dir"/build/release/bin/*
export PATH="$dir/path:$PATH"

starts() { # WANT [ARGUMENT]...
    local want=$1 got
    shift
    got=$("$dir/quickstart" "$@" | tail -n 1)
    [ "$got" = "$want" ] || { echo "quickstart $*: started $got, not $want"; exit 1; }
}
starts '<--algo><ppo.so><--reward><imdb.so>'
starts '<--algo><ppo.so><--reward><imdb.so><--seed><1>' --seed 1
starts '<--algo><ppo.so><--reward><imdb.so><--set><run.note=a b>' imdb --set 'run.note=a b'
starts '<--preset><arithmetic>' arithmetic
starts '<--preset><arithmetic><--seed><2>' arithmetic --seed 2
rm "$dir/build/release/bin/rlhf-host"
status=0
said=$("$dir/quickstart" arithmetics --seed 2 2>&1) || status=$?
[ $status = 2 ] && [[ $said = "quickstart: there is no job 'arithmetics'; imdb and arithmetic"* ]] ||
    { echo "quickstart arithmetics: $status, $said"; exit 1; }
