// test_saving.c: checkpoints that are requested by time or by SIGUSR1, not by phase number. Also
// tests the state that remains when a file could not be written.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "                    \
    "--set batch.size=16 --set optim.schedule_phases=100000 --threads 1 "

// Waits (up to half a minute) for $1 to be true.
#define UNTIL                                                                                      \
    "until_true() { n=0; while [ $n -lt 300 ] && ! eval \"$1\"; do sleep 0.1; n=$((n+1)); done; "  \
    "}; "

// Requests a checkpoint of run s with the command `ask`, and kills the run (-9) when the command
// `done` succeeds. If the run is then resumed for two phases, it ends with the same bytes as a run
// without that checkpoint.
static void killed_after_a_checkpoint(struct e2e *t, const char *settings, const char *ask,
                                      const char *done) {
    int status = e2e_shell(t,
                           UNTIL "\"$HOST\" " RUN "%s --set run.phases=100000 --out s 2>log & "
                                 "pid=$!; until_true '[ -s s/metrics.jsonl ]'; %s; "
                                 "until_true '%s'; "
                                 "kill -0 $pid || exit 9; kill -KILL $pid; wait $pid; "
                                 "cat log; readlink s/checkpoints/latest >last; test -s last",
                           settings, ask, done);
    assert_int_equal(status, 0);
    if (*ask != ':') e2e_says(t, "checkpoint written: s/checkpoints/0");
    assert_int_equal(e2e_shell(t, "n=$(sed 's/^0*//' last); \"$HOST\" --resume s --threads 1 "
                                  "--set run.phases=$((n+2)) && \"$HOST\" " RUN
                                  "--set run.phases=$((n+2)) --out u"),
                     0);
    e2e_same_tree(t, "u/checkpoints/latest/", "s/checkpoints/latest/");
}

static void by_time(void **state) {
    killed_after_a_checkpoint(*state, "--set checkpoint.every_s=1", ":",
                              "[ -e s/checkpoints/latest ]");
}

static void by_signal(void **state) {
    killed_after_a_checkpoint(*state, "--set checkpoint.every_s=0", "kill -USR1 $pid",
                              "grep -q \"checkpoint written: s/checkpoints/0\" log");
}

// Checkpoints by time and by signal are not candidates for checkpoints/best. Otherwise stopping a
// run would change `best`.
static void the_best_is_one_of_the_planned(void **state) {
    struct e2e *t = *state;
    const char *run = RUN "--set checkpoint.best=objective/loss --set checkpoint.best_mode=min "
                          "--set run.phases=6 --set checkpoint.every=3 ";
    assert_int_equal(e2e_run(t, "%s --out u", run), 0);
    assert_int_equal(e2e_run(t, "%s --set run.stop_after=4 --out s", run), 0);
    assert_int_equal(e2e_shell(t, "readlink s/checkpoints/best"), 0);
    e2e_says(t, "000003");
    assert_int_equal(e2e_run(t, "--resume s --set run.stop_after=0"), 0);
    e2e_same_tree(t, "u/checkpoints/latest/", "s/checkpoints/latest/");
}

// A limit on file size acts like a full disk: an error message, not a signal.
static void a_file_that_may_not_grow(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set run.phases=4 --out u"), 0);
    assert_int_equal(e2e_run(t, RUN "--set run.phases=4 --set run.stop_after=2 --out s"), 0);
    assert_int_equal(e2e_shell(t, "cp -rP s/checkpoints/000002 before; "
                                  "ulimit -f 16; \"$HOST\" --resume s --set run.stop_after=0 "
                                  "--threads 1"),
                     1);
    e2e_says(t, "the checkpoint of phase 4 was not written: ");
    e2e_says(t, ": cannot write: File too large");
    e2e_says(t, "2 phases are kept");
    e2e_same_tree(t, "before", "s/checkpoints/latest/");
    assert_int_equal(e2e_run(t, "--resume s --set run.stop_after=0"), 0);
    e2e_same_tree(t, "u/checkpoints/latest/", "s/checkpoints/latest/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_time, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(by_signal, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_best_is_one_of_the_planned, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_may_not_grow, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("faults_saving", tests, NULL, NULL);
}
