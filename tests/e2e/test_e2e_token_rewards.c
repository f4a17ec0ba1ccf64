// test_e2e_token_rewards.c: token rewards count in everything that uses scores: metrics,
// normalizing, clipping, the NaN policy, penalties, early stopping and the choice of the best
// checkpoint.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOKENS "--reward \"$RLHF_TEST_PLUGINS/token_reward.so"
#define RUN                                                                                        \
    "--policy model --set policy.init=random --prompts prompts.txt --set batch.size=8 "            \
    "--set sampling.max_new_tokens=6 --set log.tensorboard=false --set optim.lr=1e-4 "
#define GRPO RUN "--algo grpo.so --set algo.group_size=4 --set algo.minibatches=1 "

// Asserts that every metric except times agrees within the tolerance `rel`. The share of exactly
// equal rewards may differ, because sums of token rewards are rounded.
static void same_metrics(struct e2e *t, const char *a, const char *b, double rel) {
    json_t *x = e2e_metrics(t, a), *y = e2e_metrics(t, b);
    const char *name;
    json_t *v;
    assert_int_equal(json_array_size(x), json_array_size(y));
    for (int i = 0; i < (int)json_array_size(x); i++)
        json_object_foreach(json_array_get(x, (size_t)i), name, v) {
            if (!json_is_number(v) || !strncmp(name, "time", 4) || !strncmp(name, "perf", 4) ||
                strstr(name, "/time") || !strcmp(name, "optim/spared_rows"))
                continue;
            double p = json_number_value(v), q = e2e_metric(y, i, name);
            if (!(fabs(p - q) <= rel * (1 + fabs(p))))
                fail_msg("%s of row %d is %.17g and %.17g", name, i, p, q);
        }
    json_decref(x);
    json_decref(y);
}

static double first(struct e2e *t, const char *run, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    double v = e2e_metric(rows, 0, name);
    json_decref(rows);
    return v;
}

// Some algorithms use only the sum of a row's rewards. For these, a phase does not depend on the
// rewards' positions.
static void the_same_however_it_is_paid(void **state) {
    struct e2e *t = *state;
    static const char *const with[] = {
        GRPO,
        GRPO "--set rewards.normalize=before",
        GRPO "--set rewards.normalize=after",
        GRPO "--set rewards.clip=1.5",
        GRPO "--set rewards.normalize=after --set rewards.clip=0.5",
        GRPO
        "--set response.truncate=period --set response.period_min=1 --set response.period_max=4",
        GRPO "--set response.non_stop=replace --set response.non_stop_penalty=-3",
        GRPO "--set response.non_stop=subtract --set response.non_stop_penalty=2",
        RUN "--algo ppo.so --set algo.minibatches=2 --set algo.advantage=sequence "
            "--set algo.normalize_scores=true",
        RUN "--algo ppo.so --set algo.minibatches=2 --set algo.advantage=sequence "
            "--set algo.normalize_scores=true --set algo.whiten_scope=minibatch",
    };
    for (int k = 0; k < (int)(sizeof with / sizeof *with); k++) {
        for (int tokens = 0; tokens < 2; tokens++)
            if (e2e_run(t,
                        "%s " TOKENS ":shift=-7,tokens=%s,weight=0.5\" --set run.phases=1 "
                        "--set compute.dtype=f32 --set run.dir=%c%d",
                        with[k], tokens ? "true" : "false", tokens ? 't' : 'e', k) != 0)
                fail_msg("%s: %s", with[k], t->out);
        char a[16], b[16];
        snprintf(a, sizeof a, "e%d", k);
        snprintf(b, sizeof b, "t%d", k);
        same_metrics(t, a, b, 2e-4);
    }
    // The rewards are 7 to 10, each multiplied by a half.
    assert_true(fabs(first(t, "t0", "objective/scores") - 4.25) < 1e-6);
    assert_true(fabs(first(t, "t0", "objective/rlhf_reward") - 4.25) < 1e-3);
    assert_true(fabs(first(t, "t3", "objective/scores") - 1.5) < 1e-6);
}

static void a_row_without_a_number_costs_its_own_reward_alone(void **state) {
    struct e2e *t = *state;
    static const char *const order[] = {
        TOKENS ":shift=-7\" --reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=2\"",
        "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=2\" " TOKENS ":shift=-7\"",
    };
    for (int k = 0; k < 2; k++)
        assert_int_equal(e2e_run(t,
                                 GRPO "%s --set rewards.nan_policy=zero --set run.phases=2 "
                                      "--set run.dir=z%d",
                                 order[k], k),
                         0);
    // Over rows 0 to 7, the mean of one reward is 8.5. The other reward gives 0, NaN, 2, NaN, 1,
    // NaN, 0, NaN. NaN counts as 0.
    assert_true(fabs(first(t, "z0", "objective/scores") - (8.5 + 3.0 / 8)) < 1e-6);
    assert_true(fabs(first(t, "z1", "objective/scores") - (8.5 + 3.0 / 8)) < 1e-6);
    same_metrics(t, "z0", "z1", 0);
    // A NaN token reward makes its row's reward NaN.
    assert_int_equal(e2e_run(t, GRPO TOKENS ":shift=-7,bad=4\" --set run.dir=stop"), 1);
    e2e_says(t, "token_reward (token_reward.so) gave nan for row 3");
    assert_int_equal(e2e_run(t, GRPO TOKENS ":shift=-7,bad=4\" --set rewards.nan_policy=zero "
                                            "--set run.phases=1 --set run.dir=zero"),
                     0);
    assert_true(fabs(first(t, "zero", "objective/scores") - 2 * (7 + 8 + 9) / 8.0) < 1e-6);
    assert_true(fabs(first(t, "zero", "rewards/not_finite") - 2) < 1e-6);
    assert_int_equal(e2e_run(t, GRPO TOKENS ":shift=-7,bad=4\" --set rewards.nan_policy=drop "
                                            "--set run.phases=1 --set run.dir=drop"),
                     0);
    assert_true(fabs(first(t, "drop", "objective/scores") - 8) < 1e-6);
}

// Weights can make finite rewards overflow.
static void a_sum_that_overflows_stops_the_run(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO TOKENS ":shift=-2e38,weight=4\" --set run.dir=o"), 1);
    e2e_says(t, "the rewards of row 0 of phase 1 add up to inf");
}

static void a_fixed_score_replaces_what_tokens_pay(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO TOKENS ":shift=-7\" --set response.truncate=period "
                                            "--set response.period_min=60 "
                                            "--set response.period_max=61 --set run.phases=1 "
                                            "--set run.dir=p"),
                     0);
    assert_true(fabs(first(t, "p", "objective/scores") + 1) < 1e-6);
    assert_true(fabs(first(t, "p", "returns/mean") + 1) < 1e-6);
    // There are 260 tokens, so a stop within 6 tokens is unlikely (see the share below).
    assert_int_equal(e2e_run(t, GRPO TOKENS ":shift=-7\" --set sampling.stop_at_eos=false "
                                            "--set response.non_stop=replace "
                                            "--set response.non_stop_penalty=-3 "
                                            "--set run.phases=1 --set run.dir=n"),
                     0);
    assert_true(fabs(first(t, "n", "completions/clipped_ratio") - 1) < 1e-6);
    assert_true(fabs(first(t, "n", "objective/scores") + 3) < 1e-6);
    assert_true(fabs(first(t, "n", "reward_std")) < 1e-6);
}

static void a_run_can_end_by_it(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO TOKENS ":shift=-7\" --set early_stop.reward=8 "
                                            "--set early_stop.window=1 --set early_stop.patience=2 "
                                            "--set run.phases=5 --set run.dir=s "
                                            "--set checkpoint.best=objective/rlhf_reward "
                                            "--set checkpoint.every=9"),
                     0);
    e2e_says(t, "early stop: the mean reward 8.5 is above early_stop.reward 8");
    e2e_says(t, "reward 8.5");
    json_t *rows = e2e_metrics(t, "s");
    assert_int_equal(json_array_size(rows), 2);
    json_decref(rows);
    assert_true(e2e_exists(t, "s/checkpoints/best"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_however_it_is_paid, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_row_without_a_number_costs_its_own_reward_alone,
                                        e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_sum_that_overflows_stops_the_run, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_fixed_score_replaces_what_tokens_pay, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_run_can_end_by_it, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_token_rewards", tests, NULL, NULL);
}
