#!/bin/sh
# Ranks that cannot see the run directory get a copy of the checkpoint from rank 0, or all end with one
# sentence. Needs mount namespaces (unshare -m); skipped without them.
set -eu
limit=120
status=0
. "$(dirname "$0")/launchers.sh"
if ! unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null; then
    echo "skipped: this user cannot make a mount namespace"
    exit 77
fi
host=$RLHF_BUILD_DIR/bin/rlhf-host
cd "$work"
run="--algo ppo.so --reward period_count.so --set batch.size=8 --set sampling.max_new_tokens=8 --set run.threads=1
    --set parallel.shards=2 --set log.progress=off --phases 2"
"$host" $run --out whole >"$work/out" 2>&1 || fail "a whole run"
mkdir copies
for name in $launchers; do
    "$host" $run --set run.stop_after=1 --out "part-$name" >"$work/out" 2>&1 || fail "a run that stops"
    there=$work/part-$name
    hidden="mount -t tmpfs none $there && exec $host --resume $there"
    start "$name" 1 "$host" --resume "$there" : -n 1 unshare -m sh -c "export TMPDIR=/nowhere; $hidden"
    [ $status = 2 ] || fail "$name: no room for a copy"
    says 'error: rank 1 on [^ ]*: --resume: this rank does not see the run directory, and cannot make a directory'
    start "$name" 1 "$host" --resume "$there" : -n 1 unshare -m sh -c "export TMPDIR=$work/copies; $hidden"
    [ $status = 0 ] || fail "$name: a rank without the run directory"
    cmp -s whole/checkpoints/latest/model.safetensors "$there/checkpoints/latest/model.safetensors" ||
        fail "$name: other weights"
    [ -z "$(ls copies)" ] || fail "$name: a copy is left: $(ls copies)"
done
echo ok
