// test_e2e_best.c: tests which checkpoint is checkpoints/best, that this checkpoint is kept, and
// that resuming does not change it.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// With few random responses, the scores of phases go up and down.
#define RUN                                                                                        \
    "--algo ppo.so --reward period_count.so --policy model --prompts prompts.txt "                 \
    "--set policy.init=random --set batch.size=8 --set algo.minibatches=1 "                        \
    "--set sampling.max_new_tokens=24 --set optim.lr=1e-5 --set checkpoint.every=2 "               \
    "--set checkpoint.best=objective/scores --set checkpoint.keep=2 "

static int64_t link_target(const struct e2e *t, const char *link) {
    char path[512], name[64];
    snprintf(path, sizeof path, "%s/%s", t->dir, link);
    ssize_t n = readlink(path, name, sizeof name - 1);
    if (n <= 0) fail_msg("%s is no link", link);
    name[n] = 0;
    return strtoll(name, NULL, 10);
}

// Returns the phase with the best metric among the phases up to `last` that have a checkpoint. If
// several metrics are equal, returns the first of these phases.
static int64_t best_phase(const struct e2e *t, const char *run, int last, double sign) {
    json_t *rows = e2e_metrics(t, run);
    int64_t best = 2;
    for (int phase = 2; phase <= last; phase += 2)
        if (sign * e2e_metric(rows, phase - 1, "objective/scores") >
            sign * e2e_metric(rows, (int)best - 1, "objective/scores"))
            best = phase;
    json_decref(rows);
    return best;
}

static int has(const struct e2e *t, const char *run, int64_t phase) {
    char name[64];
    snprintf(name, sizeof name, "%s/checkpoints/%06lld/state/run.json", run, (long long)phase);
    return e2e_exists(t, name);
}

// Checks that the two newest checkpoints and the best checkpoint exist, and that the others do not.
static void check_kept(const struct e2e *t, const char *run, int last, int64_t best) {
    for (int phase = 2; phase <= last; phase += 2) {
        int want = phase > last - 4 || phase == best;
        if (has(t, run, phase) != want)
            fail_msg("checkpoint %d of %d (best %d) is %s", phase, last, (int)best,
                     want ? "gone" : "still there");
    }
}

static void the_best_is_kept(void **state) {
    struct e2e *t = *state;
    int early = 0;
    for (int seed = 1; seed <= 3; seed++) {
        assert_int_equal(e2e_run(t,
                                 RUN "--set run.phases=10 --seed %d --set run.dir=m%d "
                                     "--set checkpoint.best_mode=%s",
                                 seed, seed, seed == 2 ? "min" : "max"),
                         0);
        char run[8], link[64];
        snprintf(run, sizeof run, "m%d", seed);
        snprintf(link, sizeof link, "m%d/checkpoints/best", seed);
        int64_t best = best_phase(t, run, 10, seed == 2 ? -1 : 1);
        assert_int_equal(link_target(t, link), best);
        check_kept(t, run, 10, best);
        early += best <= 6;
    }
    assert_true(early > 0); // otherwise there was nothing to protect
    // The link to the best checkpoint can be used as a model directory.
    assert_int_equal(e2e_run(t, "generate --model m1/checkpoints/best --prompt a --max-new 4"), 0);
}

static void resuming_changes_nothing(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set run.phases=12 --set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, RUN "--set run.phases=6 --set run.dir=b"), 0);
    // Simulates a run that died before it set the link.
    assert_int_equal(e2e_shell(t, "rm b/checkpoints/best"), 0);
    assert_int_equal(e2e_run(t, "--resume b --set run.phases=12"), 0);
    assert_int_equal(link_target(t, "b/checkpoints/best"), best_phase(t, "a", 12, 1));
    e2e_same_tree(t, "a/checkpoints", "b/checkpoints");
}

// If the metric is changed, the search for the best checkpoint starts over. If the metric is
// removed, the best checkpoint so far stays.
static void another_metric_and_none(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set run.phases=6 --set run.dir=a"), 0);
    int64_t best = best_phase(t, "a", 6, 1);
    assert_int_equal(e2e_shell(t, "cp -r a b"), 0);
    assert_int_equal(e2e_run(t, "--resume a --set run.phases=14 --set checkpoint.best="), 0);
    assert_int_equal(link_target(t, "a/checkpoints/best"), best);
    check_kept(t, "a", 14, best);
    assert_int_equal(
        e2e_run(t, "--resume b --set run.phases=10 --set checkpoint.best=val/sequence_lengths"), 0);
    assert_int_equal(link_target(t, "b/checkpoints/best"), 8); // all equal: the first of the two
    assert_int_equal(
        e2e_run(t, "--resume b --set run.phases=12 --set checkpoint.best=objective/score"), 2);
    e2e_says(t, "checkpoint.best: phase 11 reports no metric \"objective/score\"");
    e2e_says(t, "did you mean \"objective/scores\"?");
    assert_int_equal(link_target(t, "b/checkpoints/best"), 8);
    assert_true(has(t, "b", 8));
    assert_int_equal(e2e_run(t, RUN "--set run.dir=c --set checkpoint.best_mode=most"), 2);
    e2e_says(t, "checkpoint.best_mode");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_is_kept, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(resuming_changes_nothing, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(another_metric_and_none, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_best", tests, NULL, NULL);
}
