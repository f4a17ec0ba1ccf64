#!/bin/sh
# rlhf-host scale --measure FILE under each MPI: rank 0 writes the measurements of all ranks, and
# keeps a run's numbers that are in the file. If the network cannot be measured, the program prints
# one sentence and leaves the file unchanged.
set -eu
. "$(dirname "$0")/launchers.sh"
host=$RLHF_BUILD_DIR/bin/rlhf-host
figures=$RLHF_SOURCE_DIR/tests/scale
for name in $launchers; do
    cp "$figures/default.json" "$work/f.json"
    start "$name" 2 "$host" scale --measure "$work/f.json"
    [ $status = 0 ] || fail "$name: two ranks measure their network"
    says ', 2 ranks on 1 machine: '
    says '^      1024 bytes to every rank '
    "$host" scale --from "$work/f.json" --ranks 2 --json >"$work/forecast"
    grep -q '"detail": "[^"]*, 2 ranks on 1 machine", "bytes_per_s": [1-9][0-9.]*, "ranks_per_host": 2' "$work/forecast" ||
        fail "$name: the forecast uses the measured network"

    echo '{' >"$work/bad.json"
    start "$name" 2 "$host" scale --measure "$work/bad.json"
    [ $status = 2 ] || fail "$name: a file that is not JSON"
    says 'error: .*bad.json.* not valid JSON'
    [ "$(cat "$work/bad.json")" = '{' ] || fail "$name: the file changed"

    start "$name" 2 "$host" scale --from "$figures/ppo.json"
    [ $status = 2 ] || fail "$name: a forecast by two ranks"
    says 'error: scale, except --measure FILE without a run, works in one process'
done
"$host" scale --measure "$work/alone.json" >"$work/out" 2>&1 && fail "a single process measures a network"
says 'there is only one; start several: mpirun'
[ ! -e "$work/alone.json" ] || fail "a file was written"
echo ok
