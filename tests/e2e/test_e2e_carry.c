// test_e2e_carry.c: what advantages() passes on reaches loss() with its row, whatever epochs,
// minibatches, microbatches, shards and row uses do to the order. Groups stay together if the plan
// asks for it. Each reward's own score; the host's numbers at the end of a phase.
#include "e2e.h"

#include <string.h>

#define RUN                                                                                        \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --policy model "                     \
    "--set policy.init=random --prompts prompts.txt --set sampling.max_new_tokens=8 "              \
    "--set batch.size=16 --set optim.lr=0.01 --set run.phases=2 --set checkpoint.every=0 "         \
    "--algo \"$RLHF_TEST_PLUGINS/carrying_algo.so\" "

// Returns the value of a metric, added up over both phases.
static double sum(struct e2e *t, const char *run, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    const double both = e2e_metric(rows, 0, name) + e2e_metric(rows, 1, name);
    json_decref(rows);
    return both;
}

static void rows_keep_their_numbers(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--set batch.microbatch_tokens=16",
        "--set batch.microbatch_tokens=4096 --set algo.still=true",
        "--set batch.microbatch_tokens=64 --set algo.still=true --set batch.share_prompts=false",
        "--set batch.microbatch_tokens=32 --set algo.scope=true",
        "--set batch.microbatch_tokens=32 --set algo.minibatches=3 --set parallel.shards=2",
        "--set batch.microbatch_tokens=32 --set algo.past=14 --set optim.lr=0"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char run[16];
        snprintf(run, sizeof run, "r%zu", i);
        assert_int_equal(e2e_run(t, RUN "%s --set run.dir=%s", how[i], run), 0);
        assert_true(sum(t, run, "test/wrong") == 0);
        assert_true(sum(t, run, "test/excluded") == 0);
        assert_true(sum(t, run, "test/calls") >= 8);
        if (i == 0) assert_true(sum(t, run, "test/parts") > 0); // microbatches split groups
    }
}

// A group of four rows has more than 16 tokens, so it fills a microbatch alone.
static void groups_stay_together(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--set batch.microbatch_tokens=16",
        "--set batch.microbatch_tokens=16 --set algo.still=true",
        "--set batch.microbatch_tokens=100 --set algo.still=true --set parallel.shards=2",
        "--set batch.microbatch_tokens=4096 --set batch.share_prompts=false"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        char run[16];
        snprintf(run, sizeof run, "g%zu", i);
        assert_int_equal(
            e2e_run(t, RUN "%s --set algo.together=true --set run.dir=%s", how[i], run), 0);
        assert_true(sum(t, run, "test/wrong") == 0);
        assert_true(sum(t, run, "test/parts") == 0);
        assert_true(sum(t, run, "test/excluded") == 0);
    }
    assert_int_equal(e2e_run(t, RUN "--set algo.together=true --set algo.minibatches=5 "
                                    "--set run.dir=x"),
                     2);
    e2e_says(t, "fewer than the 5 minibatches");
    assert_int_equal(e2e_run(t, RUN "--set batch.microbatch_tokens=16 --set algo.together=true "
                                    "--set algo.still=true --set algo.taints=true "
                                    "--set run.dir=x"),
                     1);
    e2e_says(t, "algorithm carrying_algo.so, loss(): d_heads->logp of row ");
    e2e_says(t, "because advantages() called the row RLHF_USE_NO_GRADIENT");
}

#define TWO RUN "--reward period_count.so:weight=0.25 --set algo.each=true "

static void each_reward_is_given(void **state) {
    struct e2e *t = *state;
    static const char *const refused[][2] = {
        {"--set rewards.clip=1", "rewards.clip changes the sum of the rewards"},
        {"--set rewards.normalize=after", "rewards.normalize changes the sum"},
        {"--set response.non_stop=subtract", "response.non_stop changes the sum"},
        {"--set response.truncate=period", "response.truncate=period changes the sum"}};
    assert_int_equal(e2e_run(t, TWO "--set run.dir=e --set log.rollouts=true"), 0);
    assert_true(sum(t, "e", "test/wrong") == 0);
    assert_int_equal(e2e_shell(t, "grep -c reward_scores e/rollouts.jsonl"), 0);
    e2e_says(t, "32");
    assert_int_equal(e2e_run(t, TWO "--set run.dir=s --set algo.scope=true"), 0);
    assert_true(sum(t, "s", "test/wrong") == 0);
    // a record of scores does not hold their weights
    assert_int_equal(e2e_run(t, TWO "--set run.dir=v --set log.rollouts=true "
                                    "--set checkpoint.every=1"),
                     0);
    assert_int_equal(e2e_shell(t, "\"$HOST\" verify v --all --backend reference"), 2);
    e2e_says(t, "its record does not hold the weights of the rewards");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(e2e_run(t, TWO "%s --set run.dir=x", refused[i][0]), 2);
        e2e_says(t, refused[i][1]);
        assert_false(e2e_exists(t, "x"));
    }
}

static void too_many_numbers(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--set algo.past=15 --set run.dir=x"), 2);
    e2e_says(t, "plans carry_rows 17 and carry_tokens 1; at most 16 each");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_keep_their_numbers, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(groups_stay_together, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(each_reward_is_given, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(too_many_numbers, e2e_setup, e2e_teardown)};
    return cmocka_run_group_tests_name("e2e/carry", tests, NULL, NULL);
}
