#!/bin/sh
# Ranks on emulated GPUs whose gradients go through NCCL, which is replaced by a fake library
# (fake_nccl.c). The bits are those of one process and of MPI. If NCCL cannot be used, the run is
# refused or uses MPI.
set -eu
limit=300
status=0
. "$(dirname "$0")/launchers.sh"
gpu_host
cd "$work"
for a in tree lamp boat letter garden window song clock; do
    echo "{\"text\": \"The $a was near the river, and nobody asked why.\"}" >>texts.jsonl
done
small_model model
fake=$RLHF_BUILD_DIR/tests/nccl
export RLHF_FAKE_CUDA=devices=4
common="--policy model --set policy.init=random --set log.progress=off --set parallel.shards=4 --set batch.size=8"
sft="--algo sft.so --data texts.jsonl $common --phases 2"
ppo="--algo ppo.so --reward period_count.so --set sampling.max_new_tokens=4 --set value.critic=separate $common --phases 1"
run="$gpu_host --set compute.backend=cuda"

one() {
    name=$1
    shift
    $run "$@" --out "$name" >out 2>&1 || fail "$name on one process"
    left "$name" >"$name.one"
}

# equal NAME RUN: checks that RUN has the same bits as NAME.
equal() {
    left "$2" >several
    cmp -s "$1.one" several || {
        diff "$1.one" several | cut -c 1-300 >"$work/out"
        fail "$2 has other bits than one process"
    }
}

one sft $sft
one ppo $ppo
for launcher_name in $launchers; do
    for n in 2 4; do
        for what in sft ppo; do
            [ $what = sft ] && args=$sft || args=$ppo
            rm -f moved
            start "$launcher_name" $n env LD_LIBRARY_PATH="$fake" FAKE_NCCL_LOG="$work/moved" \
                $run $args --set parallel.backend=nccl --out "$what-$launcher_name-$n"
            [ $status = 0 ] || fail "$what: $n ranks of $launcher_name"
            says 'gradients go from GPU to GPU: NCCL 2.21.5$'
            equal $what "$what-$launcher_name-$n"
            [ "$(grep -c 'groups, [1-9][0-9]* bytes sent' moved)" = $n ] || fail "$n ranks did not send: $(cat moved)"
        done
    done
done

set -- $launchers
name=$1
with="env LD_LIBRARY_PATH=$fake"

# NCCL is chosen even if it is not named, and recorded in manifest.json. A single process resumes
# the run without NCCL.
start "$name" 2 $with $run $sft --set run.stop_after=1 --out parts
[ $status = 0 ] || fail "two ranks with NCCL, not named"
says 'gradients go from GPU to GPU'
grep -q '"collective": "nccl"' parts/manifest.json || fail "NCCL is not in the manifest"
$run --resume parts >out 2>&1 || fail "one process that goes on"
equal sft parts
start "$name" 2 $with $run $sft --set parallel.backend=mpi --out mpi
[ $status = 0 ] || fail "MPI, named"
! grep -q 'GPU to GPU' out || fail "MPI was named"
equal sft mpi

# If the library is missing, the run uses MPI with a warning. If NCCL was named, the run is refused.
mkdir none && : >none/libnccl.so.2 # precedes a library that may be installed
bare="env LD_LIBRARY_PATH=$work/none"
start "$name" 2 $bare $run $sft --out without
[ $status = 0 ] || fail "two ranks without NCCL"
says 'warning: gradients and weights pass through host memory'
equal sft without
refused() {
    [ $status = 2 ] && [ ! -e refused ] || fail "$1"
    [ "$(grep -c 'error: ' out)" = 1 ] || fail "$1: one sentence"
}
named="$run $sft --set parallel.backend=nccl --out refused"
start "$name" 2 $bare $named
refused "no library"
says 'error: parallel.backend is nccl, but rank 0: NCCL cannot be opened ('
start "$name" 1 $with $named : -n 1 $bare $named
refused "one rank without the library"
says 'error: parallel.backend is nccl, but rank 1: NCCL cannot be opened'
start "$name" 1 $with $named : -n 1 $with FAKE_NCCL_VERSION=21805 $named
refused "another version"
says 'rank 0 has NCCL 2.21.5 and rank 1 has NCCL 2.18.5; all ranks need the same version$'
start "$name" 2 $with FAKE_NCCL_VERSION=21003 $named
refused "an old version"
says 'libnccl.so.2 is NCCL 2.10.3, which is too old; 2.14 or newer is needed$'
start "$name" 2 $with FAKE_NCCL_JOIN=fail $named
refused "ranks that cannot join"
says 'rank 0: joining the ranks with NCCL failed: unhandled system error: no network$'
start "$name" 2 $with FAKE_NCCL_JOIN=fail $run $sft --out joins
[ $status = 0 ] || fail "ranks that cannot join, NCCL not named"
says 'warning: gradients and weights pass .*no network$'
equal sft joins
start "$name" 2 $with "$gpu_host" --set compute.backend=cpu $sft --set parallel.backend=nccl --out refused
refused "no cards"
says 'error: parallel.backend is nccl, which connects GPUs, and rank 0 on [^ ]* computes with the backend cpu; '
"$gpu_host" $sft --set parallel.backend=nccl --out refused >out 2>&1 || status=$?
refused "no launcher"

# A failure and a dead rank end all ranks.
start "$name" 1 $with $run $sft --out fails : -n 1 $with FAKE_NCCL_FAIL=3 $run $sft --out fails
[ $status != 0 ] && [ $status != 124 ] && [ $status != 137 ] || fail "a failed exchange"
grep -q 'a cable is broken\|a rank is gone' out || fail "a failed exchange says why"
start "$name" 1 $with $run $sft --out dies : -n 1 $with FAKE_NCCL_DIE=3 $run $sft --out dies
[ $status != 0 ] && [ $status != 124 ] && [ $status != 137 ] || fail "a dead rank"
echo ok
