#!/usr/bin/env bash
# test_quickstart.sh SOURCE: tests the commands that ./quickstart runs. Installing and building are
# replaced.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/scripts" "$dir/build/release/bin" "$dir/path"
cp "$1/quickstart" "$dir/"
printf '#!/bin/sh\nexit 0\n' >"$dir/scripts/install-deps"
printf '#!/bin/sh\necho "$@" >>"%s/asked"\n' "$dir" >"$dir/path/cmake"
printf '#!/bin/sh\nexit %s\n' '${CARD_STATUS-1}' >"$dir/path/nvidia-smi" # status 0: there is a card
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
starts '<--preset><calculator><--policy><runs/calculator-form/checkpoints/latest><--seed><2>' calculator --seed 2
first=$("$dir/quickstart" calculator | sed -n '/^</p' | head -n 1 | cut -d'>' -f 1-4)
[ "$first" = '<--preset><calculator-form><--out><runs/calculator-form' ] || { echo "calculator: first $first"; exit 1; }
mkdir -p "$dir/runs/calculator-form/checkpoints/latest"
[ "$("$dir/quickstart" calculator | grep -c calculator-form\>)" = 0 ] || { echo "calculator: the first run again"; exit 1; }

# ./quickstart builds only the parts that runs need. A configured directory keeps its options.
asks() { # WANT: the expected commands of cmake
    : >"$dir/asked"
    "$dir/quickstart" >/dev/null
    diff "$dir/asked" - <<<"$1" || { echo "quickstart does not ask cmake for that"; exit 1; }
}
small='-DRLHF_TESTS=OFF -DRLHF_BENCH=OFF -DRLHF_CPU_LEVELS=NATIVE'
build='--build --preset release --target program'
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
    asks "--preset release $small -DRLHF_CUDA=OFF"$'\n'"$build"
fi
CARD_STATUS=0 asks "--preset release $small -DRLHF_CUDA=AUTO"$'\n'"$build"
: >"$dir/build/release/CMakeCache.txt"
asks "--preset release"$'\n'"$build"

rm "$dir/build/release/bin/rlhf-host"
status=0
said=$("$dir/quickstart" arithmetics --seed 2 2>&1) || status=$?
[ $status = 2 ] && [[ $said = "quickstart: there is no job 'arithmetics'; imdb, arithmetic and calculator"* ]] ||
    { echo "quickstart arithmetics: $status, $said"; exit 1; }
