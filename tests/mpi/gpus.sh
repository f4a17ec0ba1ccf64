#!/bin/sh
# Checks which card each rank of a machine takes, on emulated GPUs. Rank 1's card has too little
# memory, so using it is refused.
set -eu
limit=180
status=0
. "$(dirname "$0")/launchers.sh"
gpu_host
cd "$work"
for a in tree lamp boat letter; do echo "{\"text\": \"The $a was near the river.\"}" >>texts.jsonl; done
small_model model
run="$gpu_host --algo sft.so --data texts.jsonl --policy model --set policy.init=random --set batch.size=4
    --set log.progress=off --set parallel.backend=mpi --phases 1"
set -- $launchers
name=$1

export RLHF_FAKE_CUDA=devices=2
for backend in auto cuda; do
    start "$name" 2 $run --set compute.backend=$backend --out "own-$backend"
    [ $status = 0 ] || fail "two ranks, two cards, $backend"
    says 'compute: cuda, GPU 0, '
    says 'each of the 2 processes of this machine uses its own GPU (there are 2)$'
    grep -q '"gpu": 0,' "own-$backend/config.json" || fail "a card in config.json"
done

export RLHF_FAKE_CUDA=devices=2,memory=8G/8M
start "$name" 2 $run --set compute.backend=cuda --out refused
[ $status = 2 ] && [ ! -e refused ] || fail "rank 1 on the second card, which is too small"
says 'error: rank 1 on [^ ]*: .* of memory'
start "$name" 2 $run --set compute.backend=cuda --set compute.gpu=0 --out both
[ $status = 0 ] || fail "both ranks on the card that was named"
! grep -q 'its own GPU' out || fail "a card was named"
start "$name" 2 "$gpu_host" --resume both --set run.phases=2
[ $status = 2 ] || fail "a resumed run, for which no card was named"
start "$name" 3 $run --set compute.backend=cuda --set parallel.shards=3 --set compute.gpu=1 --out refused
[ $status = 2 ] && [ ! -e refused ] || fail "all ranks on the second card"
says 'error: '

export RLHF_FAKE_CUDA=devices=2
start "$name" 4 $run --set compute.backend=cuda --out shared
[ $status = 0 ] || fail "four ranks, two cards"
says 'warning: the 4 processes of this machine share 2 GPUs'
start "$name" 2 $run --set compute.backend=cpu --out cpu
[ $status = 0 ] || fail "no card is used"
! grep -q 'GPU' out || fail "no card is used"
echo ok
