#!/bin/sh
# kills.sh N: N times a rank is killed before one of its messages, chosen at random, and the run is
# resumed with another number of ranks. It must leave the bytes of a run in which no rank was
# killed.
set -eu
limit=300
status=0
. "$(dirname "$0")/launchers.sh"
host=$RLHF_BUILD_DIR/bin/rlhf-host
kills=${1:-4}
seed=${2:-29}
cd "$work"
small_model model
run="--algo grpo.so --policy model --set policy.init=random --set log.progress=off --set run.threads=1"
run="$run --reward period_count.so --set sampling.max_new_tokens=8 --set algo.group_size=2 --set batch.size=8"
run="$run --set parallel.shards=4 --set checkpoint.every=1 --set parallel.check_every=1 --phases 4"
dying=$RLHF_BUILD_DIR/tests/collective_dying.so
left_of() { left "$1" >"$1.left"; }

"$host" $run --out whole >"$work/out" 2>&1 || fail "a whole run"
left_of whole
set -- $launchers

# Counts the messages of a run.
for n in 2 4; do
    DYING_OVER=$lib/collectives/collective_$1.so DYING_AT=0 DYING_COUNT=$work/count-$n \
        start "$1" $n "$host" $run --set parallel.backend="$dying" --out "counted-$n"
    [ $status = 0 ] || fail "a run of $n ranks that nobody kills"
    left_of "counted-$n"
    cmp -s whole.left "counted-$n.left" || fail "$n ranks have other bits"
done

# A line has: number of ranks, rank to kill, number of its message, number of ranks of the resumed
# run, number of the launcher.
awk -v seed="$seed" -v kills="$kills" -v two="$(cat count-2)" -v four="$(cat count-4)" -v launchers=$# 'BEGIN {
    srand(seed)
    split("1 2 4", ranks, " ")
    for (i = 0; i < kills; i++) {
        n = ranks[2 + int(2 * rand())]
        do { m = ranks[1 + int(3 * rand())] } while (m == n)
        print n, int(n * rand()), 1 + int((n == 2 ? two : four) * rand()), m, 1 + int(launchers * rand())
    }
}' >plan

begun=0
while read -r n rank at m which; do
    name=$(echo "$launchers" | sed -n "${which}p")
    out=killed-$n-$rank-$at-$m
    rm -rf "$out"
    DYING_OVER=$lib/collectives/collective_$name.so DYING_RANK=$rank DYING_AT=$at \
        start "$name" "$n" "$host" $run --set parallel.backend="$dying" --out "$out"
    [ $status != 0 ] && [ $status != 124 ] || fail "$name: rank $rank of $n, killed at message $at, must end all"
    if [ -e "$out/checkpoints/latest" ]; then
        how="--resume $out"
        begun=$((begun + 1))
    else
        rm -rf "$out"
        how="$run --out $out"
    fi
    if [ "$m" = 1 ]; then
        status=0
        "$host" $how </dev/null >"$work/out" 2>&1 || status=$?
    else
        start "$name" "$m" "$host" $how
    fi
    [ $status = 0 ] || fail "$name: $m ranks go on after rank $rank of $n was killed at message $at"
    left_of "$out"
    cmp -s whole.left "$out.left" || {
        diff whole.left "$out.left" | cut -c 1-300 >"$work/out"
        fail "$name: rank $rank of $n was killed at message $at; $m ranks that go on have other bytes"
    }
    rm -rf "$out" "$out.left"
done <plan
echo "ok: $kills kills, $begun of them after a checkpoint"
