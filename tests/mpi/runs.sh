#!/bin/sh
# Runs on several ranks have one directory and one log. Settings that cannot work are refused in one
# sentence before anything is written. If a rank fails, is killed or is stopped, all ranks end, and
# the run can be resumed.
set -eu
limit=120
. "$(dirname "$0")/launchers.sh"
host=$RLHF_BUILD_DIR/bin/rlhf-host
cd "$work"
set -- $launchers
first=$1
base="--algo ppo.so --set batch.size=8 --set sampling.max_new_tokens=8 --set run.threads=1 --set parallel.shards=2"
run="$base --reward period_count.so --phases 2"

refuses() { # what, sentence
    [ $status = 2 ] && [ ! -e refused ] || fail "$1"
    says "$2"
}

# The output has n commands, and each runs in one process as it is printed.
printed() {
    sed -n -E 's/^.*(try it|go on|look closer|the whole command): (rlhf-host .*)$/\2/p' out | sed 's/^rlhf-host/"$host"/' >commands
    [ "$(wc -l <commands)" = "$1" ] || fail "the output should have $1 commands"
    while read -r command; do
        status=0
        (eval "$command") </dev/null >said 2>&1 || status=$?
        [ $status = 0 ] || { cat said >>out; fail "$command"; }
    done <commands
}

# One directory, one log.
for name in $launchers; do
    start "$name" 2 "$host" $run --set log.progress=plain --out "one-$name"
    [ $status = 0 ] || fail "$name: two ranks"
    says '  *phase 1/2  reward'
    says 'done after 2 of 2 phases'
    says 'compute: cpu'
    jq -e '.processes.ranks == 2 and (.processes.sha256 | length) == 64' "one-$name/manifest.json" >/dev/null ||
        fail "$name: manifest.json names the processes"
    start "$name" 2 "$host" $run --set run.stop_after=1 --out "two-$name"
    [ $status = 0 ] || fail "$name: two ranks end after a phase"
    printed 3
done

# Bad input.
start "$first" 2 "$host" $run --set optim.l=1 --out refused
refuses "an unknown setting" 'error: --set: unknown key "optim.l"'
start "$first" 2 "$host" $run --out "one-$first"
[ $status = 2 ] || fail "a directory that exists"
says 'error: rank 0 on [^ ]*: the run directory .* exists already'
start "$first" 1 "$host" $run --out refused : -n 1 "$host" $run --set optim.lr=1e-6 --out refused
refuses "two settings" 'error: the processes do not do the same run: settings.optim.lr is .* for rank 0 on .* and 1e-06 for rank 1 on '
start "$first" 1 "$host" $run --out refused : -n 1 "$host" $run --prompts nowhere.jsonl --out refused
refuses "a file that one rank lacks" 'error: rank 1 on [^ ]*: prompts.path: cannot open nowhere.jsonl'
start "$first" 2 "$host" eval --reward period_count.so
refuses "another command" 'error: eval works in one process, and '
start "$first" 2 "$host" $run --print-config
refuses "settings printed twice" 'error: --print-config works in one process, and '
start "$first" 2 "$host" $run --set parallel.backend=./nowhere.so --out refused
refuses "no collective" 'error: parallel.backend is ./nowhere.so, but there is no such file'
start "$first" 2 "$host" $run --set "parallel.backend=$lib/algos/ppo.so" --out refused
refuses "another plugin" 'error: parallel.backend: .*/ppo.so is not a collective'
start "$first" 2 "$host" $run --set parallel.shards=3 --out refused
refuses "shards that cannot be divided" 'error: parallel.shards is 3, and the run has 2 processes'
status=0
"$host" $run --set parallel.backend=mpi --out refused >"$work/out" 2>&1 || status=$?
refuses "no launcher" 'error: parallel.backend is mpi, but no launcher has started several processes'
case $launchers in
*openmpi*mpich*)
    start mpich 2 sh -c "$alone" sh "$host" $run --set parallel.backend=openmpi --out refused
    refuses "another MPI" 'error: mpiexec of MPICH started 2 processes .* finds 1: it belongs to another MPI' ;;
esac

# Every rank calls a reward in Python for its own rows. The reward does not see the launcher.
cat >reward.py <<'END'
import os
def score(prompts, completions, **kwargs):
    if any(name.startswith(("OMPI_", "PMIX_", "PMI_")) for name in os.environ):
        raise RuntimeError("the launcher's variables are there")
    if completions != ["", "Yes."]:  # made up before the run
        with open("asked", "a") as f:
            f.write("%d\n" % len(prompts))
    return [float(len(c)) for c in completions]
def broken(prompts, completions, **kwargs):
    if completions != ["", "Yes."]:  # made up before the run
        raise RuntimeError("no idea")
    return [0.0, 0.0]
END
if [ -f "$lib/rewards/python.so" ]; then
    start "$first" 2 "$host" $base --phases 1 --reward python.so:file=reward.py,function=score --out python
    [ $status = 0 ] || fail "a reward in Python"
    [ "$(sort -u asked)" = 4 ] || fail "each rank asks about half of the rows: $(cat asked)"
    start "$first" 2 "$host" $base --phases 2 --reward python.so:file=reward.py,function=score --set run.stop_after=1 --out later
    cp out ended
    start "$first" 2 "$host" --resume later
    [ $status = 2 ] || fail "code that a resume names"
    printed 1
    cp ended out
    printed 3
    start "$first" 2 "$host" $base --phases 1 --reward python.so:file=reward.py,function=broken --out broken
    [ $status = 1 ] || fail "a reward that raises"
    [ "$(grep -c 'error: .*no idea' out)" = 1 ] || fail "one sentence about a reward that raises"
fi

# A rank is killed or stopped. Then all ranks end, and the run is resumed with another number of
# ranks.
small_model small
long="$base --reward period_count.so --policy small --set policy.init=random --phases 80 --set checkpoint.every=1"
"$host" $long --out whole >"$work/out" 2>&1 || fail "a whole run"
for how in KILL STOP; do
    out=$work/hurt-$how
    start "$first" 2 "$host" $long --out "$out" &
    tries=0
    until [ -e "$out/checkpoints/000003" ] || [ $tries = 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -s $how "$(ps -eo pid=,args= | awk -v out="$out" '$2 ~ /rlhf-host$/ && index($0, out) { last = $1 } END { print last }')"
    wait
    [ -e "$out/checkpoints/latest" ] || fail "$how: a checkpoint is there"
    [ "$(readlink "$out/checkpoints/latest")" != 000080 ] || fail "$how: the run has ended"
    if [ $how = STOP ]; then says 'error: rank [01] on [^ ]* has not answered for 10 s'; fi
    # The launcher may return a moment before the last rank does. (A process that the kernel is
    # still ending has no arguments any more, but may still hold the lock: --resume waits for it.)
    tries=0
    while ps -eo args= | awk -v out="$out" '$1 ~ /rlhf-host$/ && index($0, out) { n++ } END { exit !n }'; do
        [ $tries != 100 ] || fail "$how: a rank is still there after 10 s"
        sleep 0.1
        tries=$((tries + 1))
    done
    "$host" --resume "$out" >"$work/out" 2>&1 || fail "$how: the run goes on"
    cmp -s "$out/checkpoints/latest/model.safetensors" whole/checkpoints/latest/model.safetensors ||
        fail "$how: a run that went on has other weights"
done
echo ok
