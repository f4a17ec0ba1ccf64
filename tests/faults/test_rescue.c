// test_rescue.c: a phase fails, or a plugin ends the phase early because the user asked to stop.
// Only that phase is lost. The checkpoint of the previous boundary is written, and the resumed run
// ends with the same bytes as a run that never failed.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define STRAY "\"$RLHF_TEST_PLUGINS/stray.so\""
// The rewards run in the host's own process.
#define COMMON                                                                                     \
    "--set rewards.isolate=never --policy model --prompts prompts.txt --set policy.init=random "   \
    "--set batch.size=4 "                                                                          \
    "--set sampling.max_new_tokens=4 --set optim.lr=1e-3 --threads 1 "
#define RUN "--algo " STRAY " --reward " STRAY " " COMMON "--phases 4 "

// Starts run x with the arguments `run`. `how`, the value of $STRAY, gives the function that fails,
// the phase and the kind of failure (stray.c). Asserts that the run ends with `status`, and that
// its newest checkpoint is that of phase `kept` (0 means that it has no checkpoint).
static void fails(struct e2e *t, const char *run, const char *how, int status, int kept) {
    int got = e2e_shell(t, "rm -rf x; STRAY=%s \"$HOST\" %s --out x", how, run);
    if (got != status) fail_msg("%s: status %d, expected %d:\n%s", how, got, status, t->out);
    char link[64], text[64];
    snprintf(link, sizeof link, "x/checkpoints/%06d/state/run.json", kept);
    snprintf(text, sizeof text, kept == 1 ? "%d phase is kept" : "%d phases are kept", kept);
    if (e2e_exists(t, "x/checkpoints/latest") != (kept > 0) || (kept && !e2e_exists(t, link)))
        fail_msg("%s: not %d phases are kept:\n%s", how, kept, t->out);
    // After Ctrl-C, the message is the command that continues the run.
    if (kept) e2e_says(t, status == 130 ? "go on: rlhf-host --resume x" : text);
}

// Does the same as fails(). In addition, asserts that the resumed run ends with the same bytes as
// run u.
static void costs_a_phase(struct e2e *t, const char *run, const char *how, int status, int kept) {
    fails(t, run, how, status, kept);
    assert_int_equal(e2e_run(t, "--resume x --trust-run"), 0);
    e2e_same_tree(t, "u/checkpoints/latest/", "x/checkpoints/latest/");
}

static void failures_go_back_to_the_boundary(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--out u"), 0);
    // Before the first step of the phase.
    costs_a_phase(t, RUN, "score:3:fail", 1, 2);
    costs_a_phase(t, RUN, "advantages:3:fail", 1, 2);
    costs_a_phase(t, RUN, "loss:4:fail", 1, 3);
    // During the update, and after it.
    costs_a_phase(t, RUN, "second_loss:2:fail", 1, 1);
    costs_a_phase(t, RUN, "late_loss:3:fail", 1, 2);
    costs_a_phase(t, RUN, "minibatch_end:3:fail", 1, 2);
    costs_a_phase(t, RUN, "phase_end:3:fail", 1, 2);
    // If the first phase fails, there is nothing to save.
    fails(t, RUN, "score:1:fail", 1, 0);
}

static void what_failed_is_said_after_what_is_kept(void **state) {
    struct e2e *t = *state;
    fails(t, RUN, "score:3:fail", 1, 2);
    const char *kept = strstr(t->out, "2 phases are kept; go on: rlhf-host --resume x");
    assert_non_null(kept);
    assert_non_null(strstr(kept, "rlhf-host: error: reward stray.so, "
                                 "score(), phase 3: no way on"));
}

// "Cancelled" is an error of the plugin unless the user asked to stop.
static void cancelled(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--out u"), 0);
    costs_a_phase(t, RUN, "score:3:stop", 130, 2);
    costs_a_phase(t, RUN, "late_loss:3:stop", 130, 2);
    costs_a_phase(t, RUN, "score:3:cancelled", 1, 2);
    fails(t, RUN, "score:3:stop", 130, 2);
    e2e_says(t, "stopped after 2 of 4 phases: x");
    assert_null(strstr(t->out, "error"));
    fails(t, RUN, "score:3:cancelled", 1, 2);
    e2e_says(t, "score(), phase 3: cancelled");
    fails(t, RUN, "score:1:stop", 130, 0);
    e2e_says(t, "stopped after 0 of 4 phases: x");
}

// If a resume will require the user to name code again, the message of the failing run already says
// this.
static void code_from_elsewhere_is_named(void **state) {
    struct e2e *t = *state;
    static const char run[] =
        "--algo grpo.so --reward " STRAY " " COMMON "--set algo.group_size=2 --phases 3 ";
    fails(t, run, "score:2:fail", 1, 1);
    assert_null(strstr(t->out, "reward.0.plugin"));
    e2e_says(t, "1 phase is kept; go on: rlhf-host --resume x --set rewards.isolate=never\n");
    fails(t, run, "score:2:fail env -u RLHF_PLUGIN_PATH", 1, 1);
    e2e_says(t, "1 phase is kept; go on: rlhf-host --resume x --reward /");
    assert_null(strstr(t->out, "--algo"));
    assert_int_equal(e2e_shell(t, "unset RLHF_PLUGIN_PATH; \"$HOST\" --resume x --threads 1"), 2);
    assert_int_equal(e2e_shell(t, "unset RLHF_PLUGIN_PATH; \"$HOST\" --resume x --threads 1 "
                                  "--set rewards.isolate=never --reward " STRAY),
                     0);
}

// If memory does not suffice for the copy, a failed update leads back to the last checkpoint.
static void without_a_copy(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set checkpoint.undo_mib=0 --out u"), 0);
    costs_a_phase(t, RUN "--set checkpoint.undo_mib=0", "loss:3:fail", 1, 2);
    costs_a_phase(t, RUN "--set checkpoint.undo_mib=0 --set checkpoint.every=2", "late_loss:4:fail",
                  1, 2);
    fails(t, RUN "--set checkpoint.undo_mib=0", "late_loss:3:fail", 1, 0);
    e2e_says(t, "phase 2 cannot be gone back to: the update had begun");
    e2e_says(t, "checkpoint.undo_mib");
    e2e_says(t, "nothing is kept of 2 phases");
}

// A moving reference, a reward model in training, a critic and Muon's state are restored, too.
static void everything_that_changes_goes_back(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n");
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" --algo bradley_terry.so --data pairs.jsonl --policy model "
                     "--set policy.init=random --set batch.size=1 --set score.calibrate=0 "
                     "--phases 1 --out r --threads 1 && mv r/checkpoints/000001 rm"),
        0);
    const char *outer = "--algo " STRAY " --reward bt_rm.so:model=rm --judge " STRAY " " COMMON
                        "--set score.calibrate=8 --phases 4 ";
    assert_int_equal(e2e_shell(t, "STRAY_OUTER=1 \"$HOST\" %s --out u", outer), 0);
    static const char *const hows[] = {"score:3:fail", "late_loss:3:fail", "phase_end:3:fail"};
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
        char how[64];
        snprintf(how, sizeof how, "%s STRAY_OUTER=1", hows[i]);
        fails(t, outer, how, 1, 2);
        assert_int_equal(e2e_shell(t, "STRAY_OUTER=1 \"$HOST\" --resume x --trust-run --threads 1"),
                         0);
        e2e_same_tree(t, "u/checkpoints/latest/", "x/checkpoints/latest/");
    }
    const char *critic = RUN "--set value.critic=separate --set optim.kind=muon ";
    assert_int_equal(e2e_shell(t, "STRAY_VALUE=1 \"$HOST\" %s --out v", critic), 0);
    fails(t, critic, "late_loss:3:fail STRAY_VALUE=1", 1, 2);
    assert_int_equal(e2e_shell(t, "STRAY_VALUE=1 \"$HOST\" --resume x --trust-run --threads 1"), 0);
    e2e_same_tree(t, "v/checkpoints/latest/", "x/checkpoints/latest/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(failures_go_back_to_the_boundary, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_failed_is_said_after_what_is_kept, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(code_from_elsewhere_is_named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(cancelled, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(without_a_copy, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(everything_that_changes_goes_back, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("faults_rescue", tests, NULL, NULL);
}
