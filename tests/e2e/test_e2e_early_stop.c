// test_e2e_early_stop.c: tests early_stop.*: which conditions end a run, the report about a limit
// that can never end the run, and the samples of the last phase.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define ROLLOUT                                                                                    \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --policy model "                     \
    "--set policy.init=random --prompts prompts.txt --set sampling.max_new_tokens=4 "              \
    "--set batch.size=4 --set log.tensorboard=false "
#define OFTEN  "--set early_stop.window=2 --set early_stop.patience=2 "
#define GROUPS ROLLOUT "--algo \"$RLHF_TEST_PLUGINS/group_algo.so:group_size=2,kl="
#define SFT    "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "

static void refused(struct e2e *t, const char *args, const char *text) {
    int status = e2e_run(t, "%s --set run.phases=4 --set run.dir=x", args);
    if (status != 2) fail_msg("%s: exit status %d\n%s", args, status, t->out);
    e2e_says(t, text);
    assert_false(e2e_exists(t, "x"));
}

static int phases(struct e2e *t, const char *run) {
    json_t *rows = e2e_metrics(t, run);
    int n = (int)json_array_size(rows);
    json_decref(rows);
    return n;
}

static void what_is_never_measured_is_refused(void **state) {
    struct e2e *t = *state;
    refused(t, SFT "--set early_stop.kl=1", "early_stop.kl is 1, but sft.so");
    refused(t, SFT "--set early_stop.reward=-1", "early_stop.reward is -1, but sft.so");
    refused(t,
            ROLLOUT "--algo ppo.so --set algo.kl_placement=none --set algo.kl_measure=false "
                    "--set early_stop.kl=0.5",
            "early_stop.kl is 0.5, but ppo.so measures no KL");
    refused(t, GROUPS "absent\" --set early_stop.kl=1", "measures no KL");
    refused(t, ROLLOUT "--algo ppo.so --set early_stop.window=2",
            "early_stop.window has no effect here: neither early_stop.kl nor early_stop.reward");
    refused(t, ROLLOUT "--algo ppo.so --set early_stop.patience=3", "early_stop.patience has no");
}

#define REWARDED ROLLOUT "--algo ppo.so --set early_stop.reward=0.5 " // 0.75 in every phase

static void what_cannot_stop_in_the_phases_left_is_refused(void **state) {
    struct e2e *t = *state;
    refused(t, REWARDED "--set early_stop.patience=5",
            "early_stop.patience is 5 and 4 phases are left; give a patience of at most 4");
    refused(t, REWARDED "--set early_stop.window=20",
            "early_stop.window=20 phases, and 4 phases are left; give a window of at most 4");
    // A file may contain settings that need more phases than the run has. This only causes a
    // warning.
    e2e_write(t, "c.json",
              "{\"early_stop\": {\"patience\": 5, \"reward\": 0.5}, \"run\": {\"phases\": 9}}");
    assert_int_equal(e2e_run(t, ROLLOUT "--algo ppo.so --config c.json --phases 1 --out a"), 0);
    e2e_says(t, "early_stop.reward cannot end this run");
    // If a limit is changed on resume, only the remaining phases decide whether it can end the run.
    // A run that is resumed unchanged just continues.
    assert_int_equal(e2e_run(t, REWARDED
                             "--set early_stop.patience=3 --phases 3 --set run.stop_after=1 "
                             "--out b"),
                     0);
    assert_int_equal(e2e_run(t, "--resume b --set early_stop.patience=4"), 2);
    e2e_says(t, "early_stop.patience is 4 and 2 phases are left; give a patience of at most 3");
    assert_int_equal(e2e_run(t, "--resume b"), 0);
}

// With the default patience and window, a limit stops the run after two phases.
static void a_limit_alone_stops_a_short_run(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, REWARDED "--phases 5 --out a"), 0);
    e2e_says(t, "early stop: the mean reward 0.75 is above early_stop.reward 0.5");
    assert_int_equal(phases(t, "a"), 2);
}

// An algorithm may have a reference and still not report a KL. The host knows this only after the
// first phase.
static void what_the_first_phase_does_not_measure_ends_the_run(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, GROUPS "none\" --set early_stop.kl=1 --set run.phases=4 --set run.dir=x"), 2);
    e2e_says(t, "early_stop.kl: phase 1 reports no metric \"objective/kl\"");
    assert_int_equal(phases(t, "x"), 1); // the message has the existing names
    // If a later phase lacks the metric, it is ignored without a message.
    assert_int_equal(e2e_run(t,
                             GROUPS "first\" " OFTEN
                                    "--set early_stop.kl=0.5 --set run.phases=4 --set run.dir=f"),
                     0);
    assert_null(strstr(t->out, "early stop"));
}

// If a metric is missing in some phases, the search for the best one continues.
static void a_metric_of_some_phases_picks_the_best(void **state) {
    struct e2e *t = *state;
    const char *run = GROUPS "first\" --set checkpoint.best=objective/kl --set checkpoint.every=1 ";
    assert_int_equal(e2e_run(t, "%s --set run.phases=2 --set run.dir=a", run), 0);
    assert_int_equal(e2e_run(t, "--resume a --set run.phases=3"), 0);
    assert_int_equal(e2e_shell(t, "test $(readlink a/checkpoints/best) = 000001"), 0);
}

static void an_infinite_kl_is_beyond_every_limit(void **state) {
    struct e2e *t = *state;
    const char *limit = GROUPS "infinite\" " OFTEN "--set early_stop.kl=100 ";
    assert_int_equal(e2e_run(t, "%s --set run.phases=9 --set run.dir=a", limit), 0);
    e2e_says(t, "early stop: the mean sequence KL inf is above early_stop.kl 100");
    assert_int_equal(phases(t, "a"), 2);
    // A checkpoint keeps the metric's window.
    assert_int_equal(
        e2e_run(t, "%s --set run.phases=9 --set run.stop_after=1 --set run.dir=b", limit), 0);
    assert_int_equal(e2e_run(t, "--resume b --set run.phases=9"), 0);
    e2e_says(t, "early stop");
    assert_int_equal(phases(t, "b"), 2);
}

// Samples are due every 3 phases here.
static void the_last_samples_are_kept(void **state) {
    struct e2e *t = *state;
    const char *run = ROLLOUT "--algo ppo.so --set log.samples=2 --set log.samples_every=3 ";
    assert_int_equal(e2e_run(t, "%s --set run.phases=5 --set run.dir=a", run), 0);
    assert_int_equal(e2e_shell(t, "grep -o '\"phase\": [0-9]*' a/samples.jsonl | tr -dc '1-9\\n' "
                                  "| tr '\\n' ' ' | grep '^1 1 3 3 5 5 $'"),
                     0);
    // A mean of 0.75 in every phase.
    assert_int_equal(
        e2e_run(t,
                "%s --set run.phases=9 --set early_stop.reward=0.5 "
                "--set early_stop.window=3 --set early_stop.patience=4 --set run.dir=b",
                run),
        0);
    e2e_says(t, "text of phase 4");
    assert_int_equal(phases(t, "b"), 4);
    assert_int_equal(e2e_shell(t, "test $(grep -c '\"phase\": 4,' b/samples.jsonl) -eq 2"), 0);
    // With log.samples_every=0, no samples are written.
    assert_int_equal(
        e2e_run(t, ROLLOUT
                "--algo ppo.so --set log.samples_every=0 --set run.phases=2 --set run.dir=c"),
        0);
    assert_int_equal(e2e_shell(t, "test ! -s c/samples.jsonl"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_never_measured_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_stop_in_the_phases_left_is_refused, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_limit_alone_stops_a_short_run, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_the_first_phase_does_not_measure_ends_the_run,
                                        e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_metric_of_some_phases_picks_the_best, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(an_infinite_kl_is_beyond_every_limit, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(the_last_samples_are_kept, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_early_stop", tests, NULL, NULL);
}
