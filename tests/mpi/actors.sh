#!/bin/sh
# Processes that only sample (parallel.actors): the run has the same bytes as a run of one process
# with rollout.ahead and the same shards, also when it is stopped, killed and resumed with other
# processes. Settings that cannot work are refused in one sentence before anything is written.
set -eu
limit=180
status=0
. "$(dirname "$0")/launchers.sh"
host=$RLHF_BUILD_DIR/bin/rlhf-host
cd "$work"
small_model model

# Prints hashes of the files that a run leaves, without times and idle shares.
left() {
    find "$1"/checkpoints/latest/ -name '*.safetensors' -o -name ahead.rows | sort | while read -r file; do
        echo "${file#"$1"} $(sha256sum <"$file")"
    done
    for file in metrics samples; do
        sed -E 's/"[^"]*(time|perf|idle_ratio)[^"]*": [^,}]*//g' "$1/$file.jsonl"
    done
}

common="--policy model --set policy.init=random --set log.progress=off --set run.threads=1 --set optim.lr=0.01
    --set parallel.shards=2 --set rollout.ahead=1 --reward period_count.so --set sampling.max_new_tokens=8"
group="--algo grpo.so --set algo.group_size=2 --set batch.size=8"

# equal NAME RUN: checks that RUN has the same bytes as NAME, whose hashes are in NAME.one.
equal() {
    left "$2" >several
    cmp -s "$1.one" several || {
        diff "$1.one" several | cut -c 1-300 >"$work/out"
        fail "$2 has other bytes than one process"
    }
}

# same NAME ARGS...: one process, then learners and actors.
same() {
    name=$1
    shift
    "$host" $common "$@" --out "$name" >"$work/out" 2>&1 || fail "$name on one process"
    left "$name" >"$name.one"
    [ "$(grep -c 'ahead.rows\|safetensors' "$name.one")" -ge 3 ] || fail "$name has no weights or no batch in flight"
    for launcher_name in $launchers; do
        for ranks in "2 1" "4 2"; do
            set -- $ranks "$@"
            n=$1
            actors=$2
            shift 2
            start "$launcher_name" $n "$host" $common "$@" --set parallel.actors=$actors --out "$name-$launcher_name-$n"
            [ $status = 0 ] || fail "$name: $n ranks of $launcher_name"
            equal "$name" "$name-$launcher_name-$n"
        done
    done
}

same ppo --algo ppo.so --set batch.size=8 --phases 3
says 'rollout.ahead: 2 processes sample the next phase.s responses while 2 train on this phase.s$'
says 'rollout.ahead: training waited for responses in .* of the time (trainer/idle_ratio), sampling waited'
same grpo $group --phases 3
same dynamic $group --set algo.dynamic_sampling=true --set algo.logprob_support=sampled --set sampling.top_k=7 --phases 2
same adapter --algo ppo.so --set batch.size=8 --set policy.adapter.rank=2 --policy "$RLHF_BUILD_DIR/share/rlhf/models/policy" --set policy.init=pretrained --phases 2

# Two phases with a learner and an actor, one phase with two of each, one phase in one process, and
# the remaining phases with a learner and two actors.
set -- $launchers
run="$group $common --phases 6"
"$host" $run --out whole >"$work/out" 2>&1 || fail "a whole run"
left whole >whole.one
start "$1" 2 "$host" $run --set parallel.actors=1 --set run.stop_after=2 --out parts
[ $status = 0 ] || fail "a learner and an actor that stop"
start "$1" 4 "$host" --resume parts --set parallel.actors=2 --set run.stop_after=1
[ $status = 0 ] || fail "two learners and two actors that go on"
"$host" --resume parts --set run.stop_after=1 >"$work/out" 2>&1 || fail "one process that goes on"
start "$1" 3 "$host" --resume parts --set parallel.actors=2 --set run.stop_after=0
[ $status = 0 ] || fail "a learner and two actors that go on"
equal whole parts

# A learner or an actor is killed. Then all processes end, and the run can be resumed with the same
# bytes.
long="$group $common --phases 30 --set checkpoint.every=1 --set checkpoint.keep=0"
"$host" $long --out long >"$work/out" 2>&1 || fail "a long run"
left long >long.one
for victim in 1 2 3 4; do
    out=$work/hurt-$victim
    start "$1" 4 "$host" $long --set parallel.actors=2 --out "$out" &
    tries=0
    until [ -e "$out/checkpoints/00000$victim" ] || [ $tries = 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -KILL "$(ps -eo pid=,args= | awk -v out="$out" -v n=$victim '$2 ~ /rlhf-host$/ && index($0, out) && ++k == n { print $1 }')"
    wait
    [ -e "$out/checkpoints/latest" ] || fail "victim $victim: a checkpoint is there"
    [ "$(readlink "$out/checkpoints/latest")" != 000030 ] || fail "victim $victim: the run has ended"
    start "$1" 2 "$host" --resume "$out" --set parallel.actors=1
    [ $status = 0 ] || fail "victim $victim: the run goes on"
    equal long "$out"
done

# If an actor gets a signal, the run ends after the phase.
out=$work/signal
start "$1" 2 "$host" $long --set parallel.actors=1 --out "$out" &
tries=0
until [ -e "$out/checkpoints/000002" ] || [ $tries = 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -TERM "$(ps -eo pid=,args= | awk -v out="$out" '$2 ~ /rlhf-host$/ && index($0, out) { last = $1 } END { print last }')"
wait
says 'stopped after [0-9]* of 30 phases'
says 'go on: rlhf-host --resume '
"$host" --resume "$out" >"$work/out" 2>&1 || fail "a run that was stopped goes on"
equal long "$out"

# A rank fails.
cat >reward.py <<'END'
def broken(prompts, completions, **kwargs):
    if completions != ["", "Yes."]:  # made up before the run
        raise RuntimeError("no idea")
    return [0.0, 0.0]
END
if [ -f "$lib/rewards/python.so" ]; then
    start "$1" 3 "$host" $run --set parallel.actors=1 --reward python.so:file=reward.py,function=broken --out broken
    [ $status = 1 ] || fail "a reward that raises"
    [ "$(grep -c 'error: .*no idea' out)" = 1 ] || fail "one sentence about a reward that raises"
fi

refuses() { # what, sentence
    [ $status = 2 ] && [ ! -e refused ] || fail "$1"
    says "$2"
}
start "$1" 2 "$host" $run --out refused
refuses "learners alone" 'error: rollout.ahead is 1, and the run has 2 processes, but none of them samples ahead'
start "$1" 2 "$host" $run --set parallel.actors=2 --out refused
refuses "actors alone" 'error: parallel.actors is 2, and the run has 2 processes, of which at least one must train'
start "$1" 1 "$host" $run --set parallel.actors=1 --out refused : -n 1 "$host" $run --out refused
refuses "two numbers" 'error: the processes do not do the same run: parallel.actors is 1 for rank 0 on .* and 0 for rank 1'
start "$1" 1 "$host" $run --set parallel.actors=1 --out refused : -n 1 "$host" $run --set parallel.actors=1 --set optim.lr=0.1 --out refused
refuses "two settings" 'error: the processes do not do the same run: settings.optim.lr is '
start "$1" 1 "$host" $run --set parallel.actors=1 --out refused : -n 1 "$host" $run --set parallel.actors=1 --prompts nowhere.jsonl --out refused
refuses "a file that the actor lacks" 'error: rank 1 on [^ ]*: prompts.path: cannot open nowhere.jsonl'
start "$1" 2 "$host" $run --set parallel.actors=1 --set rollout.ahead=0 --out refused
refuses "nothing ahead" 'error: parallel.actors is 1, but rollout.ahead is 0'
start "$1" 4 "$host" $run --set parallel.actors=2 --set parallel.shards=3 --out refused
refuses "shards" 'error: parallel.shards is 3, and the run has 2 processes that train: '
start "$1" 4 "$host" $run --set batch.size=4 --set parallel.actors=3 --out refused
refuses "few groups" 'error: batch.size is 4, which is 2 groups of responses: too few for parallel.actors=3'
status=0
"$host" $run --set parallel.actors=1 --out refused >"$work/out" 2>&1 || status=$?
refuses "no launcher" 'error: parallel.actors is 1, but the run has one process'
echo ok
