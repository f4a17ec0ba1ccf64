#!/bin/sh
# The collective over each MPI: bytes arrive, ranks agree, and a rank that fails, ends, stops, hangs or
# is out of step ends all ranks with one sentence and a status.
set -eu
. "$(dirname "$0")/launchers.sh"
ranks=$RLHF_BUILD_DIR/tests/team_ranks
for name in $launchers; do
    for n in 2 3 4; do
        start "$name" $n "$ranks" work
        [ $status = 0 ] || fail "$name: $n ranks exchange bytes"
        says "^$n ranks, $n here"
    done
    start "$name" 1 "$ranks" work
    [ $status = 0 ] || fail "$name: one rank"
    says '^alone$'
    for what in fail kill stop exit segv barriers sizes hang; do
        export TEAM_TIMEOUT=0
        [ $what != hang ] || TEAM_TIMEOUT=3
        start "$name" 4 "$ranks" $what 2
        [ $status != 0 ] && [ $status != 124 ] || fail "$name: $what of a rank must end all"
        case $what in
        fail) [ $status = 2 ] || fail "$name: status of a failed rank"
            says 'error: rank 2 on [^ ]*: this rank has no such file$' ;;
        stop) says 'error: rank 2 on [^ ]* has not answered for 10 s' ;;
        barriers) says 'error: the ranks are out of step: rank 0 .* a forward pass .* rank 2 .* a minibatch' ;;
        sizes) says 'error: the ranks are out of step: rank 2 on [^ ]* sent 100 bytes' ;;
        hang) says 'error: rank 2 on [^ ]* lives, but the others have waited for it for 3 s$' ;;
        esac
    done
done
# A rank is stopped before it begins. The others do not wait for it for ever.
small_model "$work/model"
echo '{"text": "a text of some words"}' >"$work/texts.jsonl"
for name in $launchers; do
    for rank in 0 1; do
        STOPPED=$rank start "$name" 2 sh -c '
            [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != "$STOPPED" ] || kill -STOP $$
            cd "$1" && exec "$0" --algo sft.so --policy model --set policy.init=random \
                --data texts.jsonl --set batch.size=1 --phases 1 --set parallel.timeout_s=3 --out x' \
            "$RLHF_BUILD_DIR/bin/rlhf-host" "$work"
        [ $status != 0 ] && [ $status != 124 ] || fail "$name: rank $rank is stopped at its start"
        says 'error: .* not all processes have begun within 3 s: one was stopped'
        [ ! -e "$work/x" ] || fail "$name: rank $rank is stopped at its start: a run was begun"
    done
done
# With a launcher of another MPI, each process finds no other ranks.
case $launchers in
*openmpi*mpich*)
    TEAM_BACKEND=mpich start openmpi 2 "$ranks" work
    [ $status = 2 ] || fail "MPICH under Open MPI's mpirun"
    says 'error: .* started 2 processes .* finds 1: it belongs to another MPI'
    TEAM_BACKEND=openmpi start mpich 2 sh -c "$alone" sh "$ranks" work
    [ $status = 2 ] || fail "Open MPI under MPICH's mpiexec"
    says 'error: .* started 2 processes .* finds 1: it belongs to another MPI' ;;
esac
echo ok
