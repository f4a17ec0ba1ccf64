// test_e2e_refers.c: rewards that need log-probs of sampling and of the reference, in training, in
// workers, for held-out responses, and in other commands. Where such log-probs do not exist, these
// rewards are refused.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define REFERS  "\"$RLHF_TEST_PLUGINS/refers_reward.so\""
#define OUTSIDE "\"$RLHF_TEST_PLUGINS/refers_outside.so\""
#define BLIND   "\"$RLHF_TEST_PLUGINS/blind_reward.so\""
#define PARITY  "\"$RLHF_TEST_PLUGINS/parity_reward.so\""
#define ANY                                                                                        \
    " --policy model --set policy.init=random --prompts prompts.txt --set batch.size=12 "          \
    "--set sampling.max_new_tokens=6 --set optim.lr=0.02 --set optim.schedule_phases=40 "          \
    "--set log.rollouts=true --set log.progress=off "
// This algorithm plans no reference.
#define ALONE "--algo grpo.so:group_size=2,kl_placement=none,kl_measure=false" ANY

static json_t *rows_of(struct e2e *t, const char *run) {
    assert_int_equal(e2e_shell(t, "grep '\"row\": ' %s/rollouts.jsonl > rows", run), 0);
    return e2e_lines(t, "rows");
}

static double difference(const json_t *row) {
    const json_t *sampled = json_object_get(row, "logp_sampled");
    const json_t *ref = json_object_get(row, "logp_ref");
    double sum = 0;
    assert_true(json_array_size(ref) > 0 && json_array_size(ref) == json_array_size(sampled));
    for (size_t k = 0; k < json_array_size(ref); k++)
        sum += (double)(float)json_number_value(json_array_get(sampled, k)) -
               (double)(float)json_number_value(json_array_get(ref, k));
    return sum;
}

static double number(const json_t *row, const char *key) {
    return json_number_value(json_object_get(row, key));
}

// Returns the first id of the response modulo 2, which is the reward of parity_reward.so.
static double parity(const json_t *row) {
    const json_t *ids = json_object_get(row, "ids");
    const size_t first = (size_t)json_integer_value(json_object_get(row, "prompt_length"));
    return (double)(json_integer_value(json_array_get(ids, first)) % 2);
}

// Checks that each score equals the difference of the log-probs, to the bit. If `added` is set, the
// score also contains the score of another reward, and may be off by rounding. Returns the number
// of rows whose difference is not 0.
static int check_rows(struct e2e *t, const char *run, int added) {
    json_t *rows = rows_of(t, run);
    int moved = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const float own = (float)difference(row);
        if (added)
            assert_true(fabs(number(row, "score") - parity(row) - (double)own) < 1e-5);
        else
            assert_true((float)number(row, "score") == own);
        moved += own != 0;
        if (added && number(row, "phase") == 1) assert_true(own == 0); // policy = reference
    }
    json_decref(rows);
    return moved;
}

static void scores_are_the_differences(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"--set rewards.isolate=never", "--set rewards.workers=1",
                                      "--set rewards.workers=3"};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(e2e_run(t,
                                 ALONE "--reward " REFERS " --reward " PARITY " --reward " BLIND
                                       " --set run.phases=3 --set run.dir=r%d %s",
                                 k, how[k]),
                         0);
        assert_true(check_rows(t, "r0", 1) > 12);
        if (k) assert_int_equal(e2e_shell(t, "cmp r0/rollouts.jsonl r%d/rollouts.jsonl", k), 0);
        if (k) e2e_same_tree(t, "r0/checkpoints/000003", "r1/checkpoints/000003");
    }
    assert_int_equal(e2e_shell(t, "grep -q 'time/reference' r0/metrics.jsonl && "
                                  "grep -q 'the reference' r0/manifest.json"),
                     0);
    // The run has only this reward, so each score equals the difference of the log-probs to the
    // bit. Here the reference is not the policy's starting model, and some rows are scored again.
    assert_int_equal(e2e_shell(t, "cp -rL r0/checkpoints/latest moved"), 0);
    assert_int_equal(e2e_run(t, ALONE "--reward " PARITY " --set optim.lr=0.05 "
                                      "--set run.phases=1 --set run.dir=other"),
                     0);
    assert_int_equal(e2e_run(t, "--algo grpo.so:group_size=2,kl_placement=none,kl_measure=false "
                                "--policy moved --set reference.path=other/checkpoints/000001 "
                                "--prompts prompts.txt --set batch.size=12 --set optim.lr=0.02 "
                                "--set sampling.max_new_tokens=6 --set log.rollouts=true "
                                "--set rewards.on_failure=retry --set run.phases=2 "
                                "--reward \"$RLHF_TEST_PLUGINS/refers_reward.so:marks=5\" "
                                "--set run.dir=a"),
                     0);
    e2e_says(t, "scoring again, 1 of 3");
    assert_int_equal(check_rows(t, "a", 0), 24);
}

// The same holds with further rounds, shared prompts and nucleus sampling.
static void rounds_and_supports(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, ALONE "--reward " REFERS " --reward " PARITY
                                      " --set algo.dynamic_sampling=true --set sampling.top_p=0.9 "
                                      "--set run.phases=3 --set run.dir=a"),
                     0);
    assert_true(check_rows(t, "a", 1) > 12);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 0, "sampling/fresh_rounds") > 0);
    json_decref(m);
}

// An algorithm that needs hidden states of the reference gets the same numbers with and without a
// reward that needs the reference.
static void the_algorithm_sees_the_same(void **state) {
    struct e2e *t = *state;
    static const char *const more[] = {"", "--set algo.dynamic_sampling=true"};
    for (int k = 0; k < 2; k++) {
        const char *algo = "--algo grpo.so:group_size=2,kl_placement=loss,kl_estimator=full";
        assert_int_equal(e2e_run(t,
                                 "%s" ANY "--reward " PARITY " %s --set run.phases=3 "
                                 "--set run.dir=a",
                                 algo, more[k]),
                         0);
        assert_int_equal(e2e_run(t,
                                 "%s" ANY "--reward " PARITY " %s --set run.phases=3 "
                                 "--reward \"$RLHF_TEST_PLUGINS/refers_reward.so:weight=0\" "
                                 "--set run.dir=b",
                                 algo, more[k]),
                         0);
        assert_int_equal(e2e_shell(t, "cmp a/rollouts.jsonl b/rollouts.jsonl && "
                                      "cmp a/checkpoints/000003/model.safetensors "
                                      "b/checkpoints/000003/model.safetensors && rm -r a b"),
                         0);
    }
}

static void judges_and_held_out_rows(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, ALONE "--reward " PARITY " --judge " REFERS
                                      " --set data.eval_path=prompts.txt --set data.eval_every=1 "
                                      "--set run.phases=3 --set run.dir=a"),
                     0);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 1, "judge/mean") == 0 && e2e_metric(m, 3, "judge/mean") != 0);
    json_decref(m);
    assert_int_equal(e2e_run(t, ALONE "--reward " REFERS ":weight=2 --reward " PARITY
                                      " --set data.eval_path=prompts.txt --set data.eval_every=1 "
                                      "--set sampling.top_p=0.9 "
                                      "--set run.phases=2 --set run.dir=b"),
                     0);
    m = e2e_metrics(t, "b");
    assert_true(e2e_metric(m, 0, "eval/rewards/refers_reward/mean") == 0);
    assert_true(e2e_metric(m, 2, "eval/rewards/refers_reward/mean") != 0);
    json_decref(m);
}

static void a_resumed_run_refers_to_the_same(void **state) {
    struct e2e *t = *state;
#define BOTH ALONE "--reward " REFERS " --reward " PARITY " --set run.phases=3 "
    assert_int_equal(e2e_run(t, BOTH "--set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, BOTH "--set run.stop_after=1 --set run.dir=b"), 0);
    assert_int_equal(
        e2e_run(t, "--resume b --reward " REFERS " --reward " PARITY " --set run.stop_after=0"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/rollouts.jsonl b/rollouts.jsonl"), 0);
    e2e_same_tree(t, "a/checkpoints/000003", "b/checkpoints/000003");
}

static void other_commands(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, BOTH "--set run.dir=a"), 0);
#define EVAL                                                                                       \
    "eval --model a/checkpoints/latest --data prompts.txt --n 8 --json "                           \
    "--set sampling.max_new_tokens=4 --reward " REFERS
    assert_int_equal(e2e_run(t, EVAL), 2);
    e2e_says(t, "eval: refers_reward.so needs the reference's log-probs (RLHF_REWARD_LOGP_REF): "
                "give the reference with --reference DIR");
    assert_int_equal(e2e_run(t, EVAL " --reference a/checkpoints/000003"), 0);
    e2e_says(t, "\"reward\": 0.0");
    e2e_shell(t, "cp -rL a/checkpoints/latest other && rm -r a");
    assert_int_equal(e2e_run(t, BOTH "--set optim.lr=0.05 --set run.dir=a"), 0);
    assert_int_equal(e2e_shell(t, "$HOST " EVAL " --reference other > j && "
                                  "jq -e '.kl != 0 and (.reward - .kl | fabs) < 1e-5' j"),
                     0);
    assert_int_equal(e2e_run(t, "pairs --model a/checkpoints/latest --judge " REFERS
                                " --prompts prompts.txt --set sampling.max_new_tokens=4 "
                                "--out p.jsonl"),
                     2);
    e2e_says(t, "pairs: refers_reward.so needs the reference's log-probs (RLHF_REWARD_LOGP_REF), "
                "and this command has no reference");
}

static void settings_have_an_effect(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, ALONE "--set rewards.overlap=true --reward " OUTSIDE
                                      " --set run.phases=1 --set run.dir=a"),
                     2);
    e2e_says(t, "the rewards that do their work outside the process need log-probs, which are "
                "there only when all rows are");
    assert_int_equal(e2e_run(t, ALONE "--set rewards.overlap=true --reward " OUTSIDE
                                      " --reward \"$RLHF_TEST_PLUGINS/outside_reward.so\" "
                                      "--set run.phases=1 --set run.dir=a"),
                     0);
    assert_int_equal(e2e_run(t, ALONE "--set reference.path=a/checkpoints/latest --reward " PARITY
                                      " --set run.phases=1 --set run.dir=b"),
                     2);
    e2e_says(t, "does not compare with a reference");
    assert_int_equal(e2e_run(t, ALONE "--set reference.path=a/checkpoints/latest --reward " REFERS
                                      " --set run.phases=1 --set run.dir=b --dry-run"),
                     0);
    e2e_says(t, "reference");
    assert_int_equal(e2e_run(t, ALONE "--reward " REFERS " --set run.phases=1 --dry-run"), 0);
    e2e_says(t, "reference");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(scores_are_the_differences),       T(rounds_and_supports),
        T(the_algorithm_sees_the_same),      T(judges_and_held_out_rows),
        T(a_resumed_run_refers_to_the_same), T(other_commands),
        T(settings_have_an_effect)};
    return cmocka_run_group_tests_name("e2e_refers", tests, NULL, NULL);
}
