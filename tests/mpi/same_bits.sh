#!/bin/sh
# With equal shards, a run has the same weights, moments, metrics and samples on 1, 2 and 4 ranks,
# and after a resume with another number of ranks. Work that cannot be divided is refused before
# anything is written.
set -eu
limit=120
status=0
. "$(dirname "$0")/launchers.sh"
host=$RLHF_BUILD_DIR/bin/rlhf-host
cd "$work"

small_model model
for a in tree lamp boat letter garden window song clock; do
    for b in river market school; do
        echo "{\"text\": \"The $a was near the $b, and nobody asked why.\"}" >>texts.jsonl
        echo "{\"prompt\": \"The $a was\", \"chosen\": \" near the $b.\", \"rejected\": \" not.\"}" >>pairs.jsonl
    done
done

common="--policy model --set policy.init=random --set log.progress=off --set run.threads=1 --set parallel.shards=4"
draws="--reward period_count.so --set sampling.max_new_tokens=8"
groups="$draws --set algo.group_size=4 --set batch.size=16"

# same NAME ARGS...: compares a run on one process with the same run on several processes.
same() {
    name=$1
    shift
    "$host" $common "$@" --out "$name" >"$work/out" 2>&1 || fail "$name on one process"
    left "$name" >"$name.one"
    grep -q safetensors "$name.one" || fail "$name has no weights"
    for launcher_name in $launchers; do
        for n in 2 4; do
            start "$launcher_name" $n "$host" $common "$@" --out "$name-$launcher_name-$n"
            [ $status = 0 ] || fail "$name: $n ranks of $launcher_name"
            left "$name-$launcher_name-$n" >"$name.several"
            cmp -s "$name.one" "$name.several" || {
                diff "$name.one" "$name.several" | cut -c 1-300 >"$work/out"
                fail "$name: $n ranks of $launcher_name have other bits than one process"
            }
        done
    done
}

same ppo --algo ppo.so $draws --set batch.size=8 --phases 2
same critic --algo ppo.so $draws --set batch.size=8 --set value.critic=separate --phases 1
same muon --algo ppo.so $draws --set batch.size=8 --set optim.kind=muon --phases 1
same adapter --algo ppo.so $draws --set batch.size=8 --set policy.adapter.rank=2 --policy "$RLHF_BUILD_DIR/share/rlhf/models/policy" --set policy.init=pretrained --phases 1
same grpo --algo grpo.so $groups --phases 2
same dynamic --algo grpo.so $groups --set algo.dynamic_sampling=true --phases 2
same rloo --algo rloo.so $groups --phases 1
same iterative --algo grpo_iterative.so --reward bt_rm.so --judge imdb.so --set sampling.max_new_tokens=8 \
    --set algo.group_size=4 --set batch.size=16 --set algo.iteration_phases=1 \
    --policy "$RLHF_BUILD_DIR/share/rlhf/models/policy" --set policy.init=pretrained --phases 2
same sft --algo sft.so --data texts.jsonl --set data.eval_path=texts.jsonl --set data.eval_every=1 --set batch.size=8 --phases 2
same dpo --algo dpo.so --data pairs.jsonl --set data.eval_path=pairs.jsonl --set data.eval_every=1 --set batch.size=8 --phases 2
same bradley_terry --algo bradley_terry.so --data pairs.jsonl --set batch.size=8 --phases 2

# Two phases on four ranks, two phases on two ranks, and the remaining phases on one process.
set -- $launchers
run="--algo grpo.so $groups $common --phases 6"
"$host" $run --out whole >"$work/out" 2>&1 || fail "a whole run"
start "$1" 4 "$host" $run --set run.stop_after=2 --out parts
[ $status = 0 ] || fail "four ranks that stop"
start "$1" 2 "$host" --resume parts --set run.stop_after=2
[ $status = 0 ] || fail "two ranks that go on"
"$host" --resume parts >"$work/out" 2>&1 || fail "one process that goes on"
left whole >one
left parts >several
cmp -s one several || {
    diff one several | cut -c 1-300 >"$work/out"
    fail "a run on 4, 2 and 1 ranks has other bits"
}

# Bad input.
start "$1" 3 "$host" $run --out refused
[ $status = 2 ] && [ ! -e refused ] || fail "three ranks, four shards"
says 'error: parallel.shards is 4, and the run has 3 processes: with 4 shards it can have 1, 2 or 4; start another number of processes, or change parallel.shards$'
start "$1" 4 "$host" $run --set batch.size=12 --out refused
[ $status = 2 ] && [ ! -e refused ] || fail "three groups, four ranks"
says 'error: batch.size is 12, which is 3 groups of responses: too few for 4 processes'
echo ok
