#!/bin/sh
# Runs with an environment have the same weights, rows, metrics and samples on 1, 2 and 4 ranks with
# equal shards: with the calculator, with a slow game, with faults on one rank, with episodes that
# fail for good, and after a resume with another number of ranks. `verify` plays the episodes again,
# in one process and with another instruction set.
set -eu
limit=300
status=0
. "$(dirname "$0")/launchers.sh"
host=$RLHF_BUILD_DIR/bin/rlhf-host
cd "$work"
set -- $launchers
first=$1

# all RUN: prints hashes of the files that a run leaves, with its rows.
all() {
    left "$1"
    sha256sum <"$1/rollouts.jsonl"
}

# equal ONE OTHER WHAT: checks that the runs ONE and OTHER have the same hashes.
equal() {
    all "$1" >one
    all "$2" >other
    cmp -s one other || {
        diff one other | cut -c 1-300 >"$work/out"
        fail "$3 has other bits"
    }
}

common="--set log.progress=off --set log.rollouts=true --set parallel.shards=4"
"$host" --preset calculator-form --set log.progress=off --out form >"$work/out" 2>&1 || fail "the form of calls"
calc="--preset calculator --policy form/checkpoints/latest --phases 2 --set compute.arithmetic=v1 --set batch.size=64 --set data.eval_limit=24 --set data.eval_every=1 $common"

# The calculator, with held-out episodes.
"$host" $calc --threads 2 --out calc >"$work/out" 2>&1 || fail "the calculator in one process"
grep -q '"tools/call_frequency": 0.[0-9]' calc/metrics.jsonl || fail "the calculator is not called"
grep -q '"eval/episodes/turns"' calc/metrics.jsonl || fail "held-out episodes are not measured"
for name in $launchers; do
    for n in 2 4; do
        start "$name" $n "$host" $calc --set run.threads=1 --out "calc-$name-$n"
        [ $status = 0 ] || fail "the calculator on $n ranks of $name"
        equal calc "calc-$name-$n" "the calculator on $n ranks of $name"
    done
done
RLHF_CPU_ISA=avx2 "$host" verify "calc-$first-4" --all >"$work/out" 2>&1 || fail "verify of a run on four ranks"
says '2 of 2 phases are equal to the bit'

# A game that sleeps at random, and whose program crashes once, on whichever rank comes first.
cat >game.py <<'END'
import json, os, signal, sys, time
sums, lines, crash = {}, 0, os.environ.get("CRASH")
print('{"finish": true}', flush=True)
for text in sys.stdin:
    line = json.loads(text)
    what = next(iter(line))
    episode, lines = line[what], lines + 1
    if os.environ.get("SLOW"):
        time.sleep(os.urandom(1)[0] / 50000)
    if crash and lines == 23:
        try:
            os.mkdir(crash)
            os.kill(os.getpid(), signal.SIGSEGV)
        except FileExistsError:
            pass
    if what == "close":
        sums.pop(episode, None)
        continue
    out = {"episode": episode}
    if what == "reset":
        sums[episode] = line["seed"] % 5
        out["say"] = " %d?" % sums[episode]
    elif os.environ.get("GIVES_UP") and sums[episode] % 5 == 2:
        out["failed"] = "the players are tired"
    elif what == "step":
        sums[episode] += len(line["text"].encode())
        out.update(reward=sums[episode] % 4 / 2, metrics={"sum": sums[episode] / 7})
        out.update({"done": True, "verdict": "right"} if line["turn"] == 3 else {"say": " %d." % sums[episode]})
    else:
        out["reward"] = 0.25
    print(json.dumps(out), flush=True)
END
python=/usr/bin/python3
[ -x $python ] || python=python3
small_model model
game="--algo grpo.so --set algo.group_size=4 --policy model --set policy.init=random --set batch.size=16
 --set sampling.max_new_tokens=8 --set episodes.reply_tokens=8 --set optim.lr=0.01 --phases 4 $common"
play() { printf '%s' "environment.command=$python $work/game.py"; }
"$host" $game --env env_exec.so --set "$(play)" --threads 2 --out game >"$work/out" 2>&1 || fail "the game in one process"
export SLOW=1
for n in 2 4; do
    start "$first" $n "$host" $game --env env_exec.so --set "$(play)" --set run.threads=1 --out "game-$n"
    [ $status = 0 ] || fail "the game on $n ranks"
    equal game "game-$n" "the game on $n ranks"
done
CRASH=$work/crashed
export CRASH
start "$first" 4 "$host" $game --env env_exec.so --set "$(play)" --set run.threads=1 --out crash
[ $status = 0 ] || fail "the game that crashes"
[ -d "$CRASH" ] || fail "the game did not crash"
grep -q '"episodes/failures": [1-9]' crash/metrics.jsonl || fail "the failure of one rank is not counted"
cmp -s game/rollouts.jsonl crash/rollouts.jsonl || fail "the game that crashes has other rows"
for file in game crash; do find $file/checkpoints/latest/ -name '*.safetensors' | sort | xargs cat | sha256sum >$file.weights; done
cmp -s game.weights crash.weights || fail "the game that crashes has other weights"
unset CRASH

# Episodes that fail for good are left out of the batch, whichever rank plays them.
drop="$game --set episodes.on_failure=drop --set episodes.retries=1"
export GIVES_UP=1
"$host" $drop --env env_exec.so --set "$(play)" --threads 2 --out drop >"$work/out" 2>&1 || fail "episodes left out in one process"
grep -q '"episodes/dropped": [1-9]' drop/metrics.jsonl || fail "no episode was left out"
for n in 2 4; do
    start "$first" $n "$host" $drop --env env_exec.so --set "$(play)" --set run.threads=1 --out "drop-$n"
    [ $status = 0 ] || fail "episodes left out on $n ranks"
    equal drop "drop-$n" "a batch without some episodes on $n ranks"
done
unset GIVES_UP

# Two phases on four ranks, one phase on two ranks, and the last phase in one process.
start "$first" 4 "$host" $game --env env_exec.so --set "$(play)" --set run.threads=1 --set run.stop_after=2 --out parts
[ $status = 0 ] || fail "four ranks that stop"
start "$first" 2 "$host" --resume parts --set "$(play)" --set run.stop_after=1
[ $status = 0 ] || fail "two ranks that go on"
"$host" --resume parts --set "$(play)" >"$work/out" 2>&1 || fail "one process that goes on"
equal game parts "a run on 4, 2 and 1 ranks"
echo ok
