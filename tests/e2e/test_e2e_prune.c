// test_e2e_prune.c: pruning removes old checkpoints of the run itself, and nothing else.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define SFT                                                                                        \
    "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "                    \
    "--set batch.size=16 --set optim.schedule_phases=100 --threads 1 --set checkpoint.every=2 "

static void fine(struct e2e *t, int status) {
    if (status != 0) fail_msg("exit status %d:\n%s", status, t->out);
}

// Check the names in <run>/checkpoints.
static void holds(struct e2e *t, const char *run, const char *names) {
    fine(t, e2e_shell(t, "ls %s/checkpoints | tr '\\n' ' '", run));
    if (strcmp(t->out, names) != 0) fail_msg("expected \"%s\", found \"%s\"", names, t->out);
}

static void check_latest(struct e2e *t, const char *run, int phase) {
    fine(t, e2e_shell(t,
                      "[ \"$(readlink %s/checkpoints/latest)\" = %06d ] && "
                      "grep -q '\"phase\": *%d,' %s/checkpoints/latest/state/run.json",
                      run, phase, phase, run));
}

static void an_abandoned_future_is_set_aside(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set checkpoint.keep=0 --set run.phases=10 --out r"));
    fine(t, e2e_shell(t, "cp -r r whole && ln -sfn 000004 r/checkpoints/latest"));
    fine(t, e2e_run(t, "--resume r --set checkpoint.keep=2 --set run.stop_after=1"));
    e2e_says(t, "000006 to 000010");
    e2e_says(t, "aside-1");
    check_latest(t, "r", 5);
    holds(t, "r", "000004 000005 aside-1 latest ");
    e2e_same_tree(t, "r/checkpoints/aside-1/000008", "whole/checkpoints/000008");
    // The run continues to its end. New checkpoints reuse the numbers of the discarded ones, and
    // have the same bytes.
    fine(t, e2e_run(t, "--resume r --set run.stop_after=0"));
    assert_null(strstr(t->out, "aside"));
    check_latest(t, "r", 10);
    holds(t, "r", "000008 000010 aside-1 latest ");
    e2e_same_tree(t, "r/checkpoints/000010", "whole/checkpoints/000010");
    fine(t, e2e_shell(t, "ls r/checkpoints/aside-1 | tr '\\n' ' '"));
    assert_string_equal(t->out, "000006 000008 000010 ");
}

// A user may copy checkpoints to directories with numeric names, too. The run must not remove these
// copies.
static void copies_are_not_touched(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=4 --out r"));
    fine(t, e2e_shell(t, "cd r/checkpoints && cp -r 000004 20260101 && cp -r 000004 20260102 && "
                         "cp -r 000002 000001 && mkdir 00000000000000000001 && "
                         "mkdir 99999999999999999999 && mkdir 000003 && touch 123456"));
    fine(t, e2e_run(t, "--resume r --set run.phases=8 --set checkpoint.keep=1"));
    check_latest(t, "r", 8);
    holds(t, "r",
          "00000000000000000001 000001 000003 000008 123456 20260101 20260102 "
          "99999999999999999999 latest ");
}

// A directory with the name of the next checkpoint is moved out of the way, not removed.
static void what_is_in_the_way_is_set_aside(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=4 --out r"));
    fine(t, e2e_shell(t, "mkdir r/checkpoints/000006 && echo mine >r/checkpoints/000006/note"));
    fine(t, e2e_run(t, "--resume r --set run.phases=6"));
    e2e_says(t, "aside-1");
    check_latest(t, "r", 6);
    assert_true(e2e_exists(t, "r/checkpoints/aside-1/000006/note"));
}

// The checkpoint that `best` points at stays, even if the user set the link.
static void the_best_link_is_respected(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set checkpoint.keep=0 --set run.phases=6 --out r"));
    fine(t, e2e_shell(t, "ln -s ./000002 r/checkpoints/best; cp -r r s; "
                         "ln -sfn 000006 s/checkpoints/best; ln -sfn 000004 s/checkpoints/latest"));
    fine(t, e2e_run(t, "--resume r --set checkpoint.keep=1 --set run.phases=10"));
    holds(t, "r", "000002 000010 best latest ");
    // When the run goes back to an earlier phase, later checkpoints are set aside. If `best` points
    // at one of them, the link is changed to point at that checkpoint's new place.
    fine(t, e2e_run(t, "--resume s --set checkpoint.keep=1 --set run.phases=10"));
    fine(t, e2e_shell(t, "grep -q '\"phase\": *6,' s/checkpoints/best/state/run.json"));
    check_latest(t, "s", 10);
}

// Simulates a run that died between updating the two links, or between writing a checkpoint and its
// link.
static void a_crash_between_the_links_is_mended(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set checkpoint.best=objective/loss --set checkpoint.best_mode=min "
                           "--set run.phases=8 --out r"));
    fine(t, e2e_shell(t, "cp -r r a && cp -r r b && readlink r/checkpoints/best"));
    // Here `best` was not updated yet, and no files have to be removed.
    fine(t, e2e_shell(t, "ln -sfn 000006 a/checkpoints/best"));
    fine(t, e2e_run(t, "--resume a"));
    e2e_says(t, "nothing to do");
    e2e_same_tree(t, "r/checkpoints", "a/checkpoints");
    fine(t, e2e_shell(t, "[ $(readlink a/checkpoints/best) = $(readlink r/checkpoints/best) ]"));
    // The checkpoint has its name, but `latest` does not point at it yet.
    fine(t, e2e_shell(t, "cd b/checkpoints && ln -sfn 000006 latest && ln -s 000008 .latest && "
                         "mkdir -p .writing-000010/state .removing-000002"));
    fine(t, e2e_run(t, "--resume b"));
    assert_null(strstr(t->out, "aside"));
    check_latest(t, "b", 8);
    e2e_same_tree(t, "r/checkpoints", "b/checkpoints");
}

#define RL                                                                                         \
    "--algo ppo.so --prompts prompts.txt --set batch.size=4 --set algo.minibatches=1 "             \
    "--set sampling.max_new_tokens=4 --threads 1 "
#define GATED(free) "--reward $RLHF_TEST_PLUGINS/roaming_reward.so:free=" free ",gate=$PWD/gate " RL
#define READER      "--set run.phases=1 --out reader >log 2>&1 & pid=$!; "
#define WAIT_FOR(what)                                                                             \
    "n=0; until [ " what " ] || [ $n -gt 600 ]; do sleep 0.05; n=$((n+1)); done; "

// A checkpoint stays while another process loads a model from it, until the next pruning.
static void a_checkpoint_in_use_stays(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_run(t, SFT "--set run.phases=4 --out r"));
    fine(t, e2e_shell(t, "holds() { [ -n \"$(ls -l /proc/$1/fd | grep checkpoints/000004)\" ]; }; "
                         "\"$HOST\" --policy r/checkpoints/latest " GATED("-1") READER
                      "until holds $pid || ! kill -0 $pid; do sleep 0.02; done; "
                      "\"$HOST\" --resume r --set checkpoint.keep=1 --set run.phases=10; "
                      "ls r/checkpoints | tr '\\n' ' '; touch gate; wait $pid || cat log"));
    e2e_says(t, "000004 000010 latest ");
    fine(t, e2e_run(t, "--resume r --set run.phases=12"));
    holds(t, "r", "000012 latest ");
}

// A process that found a checkpoint through `latest` can read it until two more checkpoints have
// been written.
static void the_one_before_the_newest_stays_while_the_run_goes_on(void **state) {
    struct e2e *t = *state;
    fine(t, e2e_shell(
                t, "\"$HOST\" --policy model --set policy.init=random " GATED(
                       "3") "--set checkpoint.every=1 --set checkpoint.keep=1 --set run.phases=4 "
                            "--out r >log 2>&1 & pid=$!; " WAIT_FOR(
                                "-e r/checkpoints/000003") "sleep 0.2; ls r/checkpoints | tr '\\n' "
                                                           "' '; touch gate; "
                                                           "wait $pid || { cat log; exit 1; }"));
    e2e_says(t, "000002 000003 latest ");
    holds(t, "r", "000004 latest ");
}

#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(an_abandoned_future_is_set_aside),
        T(copies_are_not_touched),
        T(what_is_in_the_way_is_set_aside),
        T(the_best_link_is_respected),
        T(a_crash_between_the_links_is_mended),
        T(a_checkpoint_in_use_stays),
        T(the_one_before_the_newest_stays_while_the_run_goes_on),
    };
    return cmocka_run_group_tests_name("e2e_prune", tests, NULL, NULL);
}
