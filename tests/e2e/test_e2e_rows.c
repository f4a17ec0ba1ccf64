// test_e2e_rows.c: rewards that use the data row, or the other rows of the group.
#include "e2e.h"

#include <math.h>

#define GOLD "\"$RLHF_TEST_PLUGINS/gold_reward.so\""
#define MODEL                                                                                      \
    " --policy model --set policy.init=random --set sampling.max_new_tokens=4 "                    \
    "--set log.progress=off --prompts rows.jsonl "
#define RUN                                                                                        \
    "--algo grpo.so:group_size=4,kl_placement=none,kl_measure=false" MODEL                         \
    "--set run.phases=1 --set batch.size=8 "

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    e2e_write(*state, "rows.jsonl",
              "{\"prompt\": \"It was\", \"answer\": \"yes\", \"extra\": {\"points\": 3}}\n"
              "{\"prompt\": \"I think\", \"answer\": \"no\", \"extra\": {\"points\": 5}}\n");
    return 0;
}

static void the_row_pays(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--reward " GOLD ":rows=4 --set run.dir=a"), 0);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 0, "objective/scores") == 1.5);
    json_decref(m);
}

// Training, the judge, eval and pairs all tell a reward which rows belong to which group.
static void groups_are_said_everywhere(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, RUN "--reward period_count.so --judge " GOLD ":rows=4 --set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, RUN "--reward " GOLD ":rows=2 --set run.dir=b"), 1);
    e2e_says(t, "the groups are not as they should be");
    assert_int_equal(e2e_shell(t, "cp -rL a/checkpoints/latest m"), 0);
    assert_int_equal(
        e2e_run(t, "eval --model m --data rows.jsonl --n 4 --set sampling.max_new_tokens=4 "
                   "--reward " GOLD ":rows=1"),
        0);
    // Rows with equal scores make no pairs. But these rows were scored.
    e2e_run(t, "pairs --model m --judge " GOLD ":rows=4 --prompts rows.jsonl --k 4 "
               "--set sampling.max_new_tokens=4 --out p.jsonl");
    e2e_says(t, "the judge never preferred one response");
}

// Dropped rows do not count in the share of right responses. Rewards do not affect the share. If
// several rewards verify responses, a response is right only if all of them agree.
static void the_share_of_right_ones(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "rows.jsonl",
              "{\"prompt\": \"It was\", \"answer\": \"yes\", \"extra\": {\"points\": 3}}\n"
              "{\"prompt\": \"I think\", \"answer\": \"no\", \"extra\": {\"points\": 5}}\n"
              "{\"prompt\": \"So it\", \"answer\": \"yes\", \"extra\": {\"points\": 1e39}}\n");
    assert_int_equal(e2e_run(t, RUN "--set batch.size=12 --set rewards.nan_policy=drop "
                                    "--reward " GOLD ":rows=4,weight=-2 --set run.dir=a"),
                     0);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 0, "objective/verifiable_correct_rate") == 0.5);
    assert_true(e2e_metric(m, 0, "rewards/gold_reward/right") == 8);
    json_decref(m);
    assert_int_equal(e2e_run(t, RUN "--reward " GOLD ":rows=4,answer=maybe,name=a --reward " GOLD
                                    ":rows=4,name=b --set rewards.nan_policy=zero "
                                    "--set run.dir=b --set log.progress=plain"),
                     0);
    e2e_says(t, "  accuracy 0.0000");
    m = e2e_metrics(t, "b");
    assert_true(e2e_metric(m, 0, "objective/verifiable_correct_rate") == 0);
    json_decref(m);
    assert_int_equal(e2e_run(t, RUN "--reward period_count.so --set run.dir=c"), 0);
    assert_int_equal(e2e_shell(t, "! grep -q verifiable c/metrics.jsonl"), 0);
    e2e_write(t, "rows.jsonl",
              "{\"prompt\": \"It was\", \"answer\": \"yes\", \"extra\": {\"points\": 3}}\n"
              "{\"prompt\": \"I think\", \"answer\": \"no\", \"extra\": {\"points\": 5}}\n");
    assert_int_equal(e2e_run(t, "eval --model a/checkpoints/latest --data rows.jsonl --n 4 "
                                "--set sampling.max_new_tokens=4 --reward " GOLD ":rows=1"),
                     0);
    e2e_says(t, "correct     0.5000");
    assert_int_equal(e2e_run(t, "eval --model a/checkpoints/latest --data rows.jsonl --n 4 --json "
                                "--set sampling.max_new_tokens=4 --reward " GOLD ":rows=1"),
                     0);
    e2e_says(t, "\"correct\": 0.5");
}

// A reward without a value for a row does not count it as 0 in mean and deviation.
static void rows_without_a_reward_count_in_no_mean(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=2\" "
                                    "--set rewards.nan_policy=zero --set log.rollouts=true "
                                    "--set rewards.normalize=before --set run.dir=a"),
                     0);
    json_t *m = e2e_metrics(t, "a"); // rows 0, 2, 4 and 6 get 0, 2, 1 and 0
    assert_true(e2e_metric(m, 0, "rewards/bad_reward/mean") == 0.75);
    assert_true(fabs(e2e_metric(m, 0, "rewards/bad_reward/std") - sqrt(0.6875)) < 1e-6);
    assert_true(fabs(e2e_metric(m, 0, "objective/scores")) < 1e-6);
    json_decref(m);
}

// If a data row cannot be scored, every command that scores finds this before sampling.
static void rows_are_asked_about_first(void **state) {
    struct e2e *t = *state;
    static const char *const bad = "rows.jsonl:3: reward answer.so: the data row has no \"answer\"";
    assert_int_equal(
        e2e_run(t, RUN "--reward answer.so --set data.eval_path=rows.jsonl --set run.dir=a"), 0);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 0, "eval/objective/verifiable_correct_rate") == 0);
    assert_true(e2e_metric(m, 1, "eval/objective/verifiable_correct_rate") == 0);
    assert_true(e2e_metric(m, 1, "objective/verifiable_correct_rate") == 0);
    json_decref(m);
    e2e_write(t, "held.jsonl", "{\"prompt\": \"So it\"}\n");
    assert_int_equal(
        e2e_run(t, RUN "--reward answer.so --set data.eval_path=held.jsonl --set run.dir=b"), 2);
    e2e_says(t, "held.jsonl:1: reward answer.so: the data row has no");
    e2e_write(t, "rows.jsonl",
              "{\"prompt\": \"It was\", \"answer\": \"yes\"}\n\n{\"prompt\": \"So it\"}\n");
    assert_int_equal(e2e_run(t, RUN "--reward answer.so --set run.dir=b"), 2);
    e2e_says(t, bad);
    assert_int_equal(e2e_exists(t, "b"), 0);
    assert_int_equal(e2e_run(t, RUN "--reward period_count.so --judge answer.so --set run.dir=b"),
                     2);
    e2e_says(t, bad);
    assert_int_equal(e2e_run(t, "eval --model a/checkpoints/latest --data rows.jsonl --n 4 "
                                "--set sampling.max_new_tokens=4 --reward answer.so"),
                     2);
    e2e_says(t, bad);
    assert_int_equal(e2e_run(t, "pairs --model a/checkpoints/latest --judge answer.so --prompts "
                                "rows.jsonl --set sampling.max_new_tokens=4 --out p.jsonl"),
                     2);
    e2e_says(t, bad);
    assert_int_equal(e2e_run(t, RUN "--prompts prompts.txt --reward answer.so --set run.dir=b"), 2);
    e2e_says(t, "prompts.txt:1: reward answer.so: the prompt has no data "
                "row, so no \"answer\", which field names");
}

static void what_the_row_lacks_is_said(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "rows.jsonl", "{\"prompt\": \"It was\", \"answer\": \"yes\"}\n");
    assert_int_equal(e2e_run(t, RUN "--reward " GOLD ":rows=4 --set run.dir=a"), 1);
    e2e_says(t, "reward gold_reward.so, score(), phase 1: the data row has no "
                "\"/extra/points\"; expected a number");
    e2e_write(t, "rows.jsonl", "{\"prompt\": \"It was\", \"answer\": 7}\n");
    assert_int_equal(e2e_run(t, RUN "--reward " GOLD ":rows=4 --set run.dir=b"), 1);
    e2e_says(t, "\"answer\" of the data row is an integer; expected a string");
    assert_int_equal(
        e2e_run(t, RUN "--prompts prompts.txt --reward " GOLD ":rows=4 --set run.dir=c"), 1);
    e2e_says(t, "there is no data row: the prompts do not come from a file of JSON rows");
}

// A run has two rewards of one plugin and a judge. The names of their metrics do not collide with
// each other or with the host's.
static void a_metric_belongs_to_its_plugin(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--reward " GOLD ":rows=4,name=a --reward " GOLD
                                    ":rows=4,answer=maybe,name=b --judge " GOLD
                                    ":rows=4,answer=no --set run.dir=a"),
                     0);
    json_t *m = e2e_metrics(t, "a");
    assert_true(e2e_metric(m, 0, "rewards/a/right") == 4);
    assert_true(e2e_metric(m, 0, "rewards/b/right") == 0);
    assert_true(e2e_metric(m, 0, "judge/right") == 4);
    assert_true(e2e_metric(m, 0, "judge/mean") == 2.5);
    assert_true(e2e_metric(m, 0, "rewards/a/objective/kl") == 1e6);
    json_decref(m);
    assert_int_equal(e2e_shell(t, "! grep -q '\"objective/kl\"' a/metrics.jsonl"), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {T(the_row_pays),
                                       T(groups_are_said_everywhere),
                                       T(the_share_of_right_ones),
                                       T(rows_without_a_reward_count_in_no_mean),
                                       T(rows_are_asked_about_first),
                                       T(what_the_row_lacks_is_said),
                                       T(a_metric_belongs_to_its_plugin)};
    return cmocka_run_group_tests_name("e2e_rows", tests, NULL, NULL);
}
