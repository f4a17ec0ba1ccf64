// test_stray.c: if the program ends inside a plugin, the message names the plugin, and the exit
// status is distinct.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo \"$RLHF_TEST_PLUGINS/stray.so\" --reward \"$RLHF_TEST_PLUGINS/stray.so\" "             \
    "--set rewards.isolate=never --policy model --prompts prompts.txt --set policy.init=random "   \
    "--set batch.size=4 "                                                                          \
    "--set sampling.max_new_tokens=4 --set optim.lr=1e-3 --set log.samples=0 --phases 2 "          \
    "--threads 1 "

// Tells sanitizers to leave fatal signals to the program, so that it behaves as without a
// sanitizer.
#define LEAVE   "handle_segv=0:handle_abort=0:handle_sigfpe=0:"
#define SIGNALS "ASAN_OPTIONS=" LEAVE "$ASAN_OPTIONS TSAN_OPTIONS=" LEAVE "$TSAN_OPTIONS "

// The run ends with `status` and prints `text`.
static void strays(struct e2e *t, const char *how, int status, const char *text) {
    int got =
        e2e_shell(t, "rm -rf x; ulimit -c 0; STRAY=%s " SIGNALS "\"$HOST\" " RUN "--out x", how);
    if (got != status) fail_msg("%s: status %d, expected %d:\n%s", how, got, status, t->out);
    e2e_says(t, text);
}

static void exits_are_told(void **state) {
    struct e2e *t = *state;
    strays(t, "score:1:exit", 1, "reward stray.so, score(): called exit(), which a plugin may not");
    strays(t, "phase_end:2:exit", 1, "algorithm stray.so, phase_end(): called exit()");
    strays(t, "loss:1:thread_exit", 1, "algorithm stray.so, loss(): ended the main thread");
}

// The signal still gives the exit status: 128 + n from the shell.
static void faults_are_told(void **state) {
    struct e2e *t = *state;
    strays(t, "score:2:crash", 128 + 11, "reward stray.so, score(): segmentation fault");
    strays(t, "loss:1:abort", 128 + 6, "algorithm stray.so, loss(): aborted");
    strays(t, "score:1:raise", 128 + 8, "score(): arithmetic exception");
    strays(t, "score:1:deep", 128 + 11, "score(): segmentation fault");
    strays(t, "score:1:thread", 128 + 11,
           "another thread during reward stray.so, score(): "
           "segmentation fault");
}

// If a child process that a plugin forked returns to the host, the child ends. The run continues
// undisturbed.
static void a_child_does_not_come_back(void **state) {
    struct e2e *t = *state;
    strays(t, "score:1:fork", 0, "score(): a process that it forked returned to the host");
    const char *done = strstr(t->out, "done after 2 of 2");
    assert_non_null(done);
    assert_null(strstr(done + 1, "done after 2 of 2"));
    assert_int_equal(e2e_shell(t, "\"$HOST\" " RUN "--out y"), 0);
    e2e_same_tree(t, "x/checkpoints/latest/", "y/checkpoints/latest/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exits_are_told, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(faults_are_told, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_child_does_not_come_back, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("faults_stray", tests, NULL, NULL);
}
