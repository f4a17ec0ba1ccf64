// test_e2e_metrics.c: metrics of the host agree with docs/metrics.md.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN                                                                                        \
    "--policy model --set policy.init=random --prompts prompts.txt --set batch.size=8 "            \
    "--set sampling.max_new_tokens=6 --set log.tensorboard=false --set log.samples=0 "
#define TOKENS "--reward \"$RLHF_TEST_PLUGINS/token_reward.so:tokens=false,"

static double first(struct e2e *t, const char *run, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    double v = e2e_metric(rows, 0, name);
    json_decref(rows);
    return v;
}

static void lengths_and_speed_are_of_responses(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN TOKENS "shift=0\" --algo ppo.so --set run.phases=1 "
                                           "--set run.dir=a"),
                     0);
    double length = first(t, "a", "completions/mean_length");
    double seconds = first(t, "a", "time/rollout");
    double made = first(t, "a", "perf/rollout_tokens_per_s") * seconds;
    double seen = first(t, "a", "perf/rollout_model_tokens_per_s") * seconds;
    assert_true(fabs(first(t, "a", "val/sequence_lengths") - length) < 1e-9);
    assert_true(fabs(made - 8 * length) < 1e-6);
    // The model also processes the prompts. It never processes the last token of a response.
    assert_true(seen > made);
}

// The reward is minus the length over 60.
static void lengths_and_rewards(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--reward length.so:max_len=60,cache=60 --algo ppo.so --set "
                                    "batch.size=64 --set sampling.max_new_tokens=40 --set "
                                    "run.phases=1 --set run.dir=l"),
                     0);
    const double length = first(t, "l", "completions/mean_length");
    assert_true(length > 1 && length < 40);
    assert_true(fabs(first(t, "l", "objective/scores") + length / 60) < 1e-6);
    assert_true(fabs(first(t, "l", "completions/length_score_correlation") + 1) < 1e-6);
    const double error = first(t, "l", "objective/scores_error");
    assert_true(error > 0 && error < 0.1);
}

// Rows 0 to 7 have rewards 0 1 2 3 0 1 2 3. Their spread is the same in every scope, however groups
// are split.
static void spread_of_rewards_in_every_scope(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--algo ppo.so --set algo.minibatches=1",
        "--algo ppo.so --set algo.minibatches=2 --set algo.group_size=4",
        "--algo ppo.so --set algo.minibatches=2 --set algo.group_size=4 --set algo.advantage=group",
        "--algo ppo.so --set algo.minibatches=2 --set algo.group_size=4 "
        "--set algo.whiten_scope=minibatch",
        "--algo ppo.so --set algo.minibatches=4 --set algo.group_size=4 "
        "--set algo.whiten_scope=minibatch",
        "--algo grpo.so --set algo.minibatches=2 --set algo.group_size=4",
        "--algo grpo.so --set algo.minibatches=2 --set algo.group_size=4 "
        "--set algo.advantage_scope=minibatch",
    };
    for (int k = 0; k < (int)(sizeof how / sizeof *how); k++) {
        char run[8];
        snprintf(run, sizeof run, "s%d", k);
        assert_int_equal(e2e_run(t,
                                 RUN TOKENS "shift=0\" %s --set algo.epochs=2 --set run.phases=1 "
                                            "--set run.dir=%s",
                                 how[k], run),
                         0);
        double std = first(t, run, "reward_std");
        if (fabs(std - sqrt(10.0 / 7)) > 1e-9) fail_msg("%s: reward_std %.9g", how[k], std);
        if (k) assert_true(first(t, run, "frac_reward_zero_std") == 0);
        snprintf(run, sizeof run, "e%d", k);
        assert_int_equal(e2e_run(t,
                                 RUN TOKENS "shift=9\" %s --set rewards.clip=2.5 "
                                            "--set algo.epochs=2 --set run.phases=1 "
                                            "--set run.dir=%s",
                                 how[k], run),
                         0);
        // All rewards, -9 to -6, are clipped to the same value, so all groups lack spread.
        assert_true(first(t, run, "reward_std") == 0);
        if (k) assert_true(first(t, run, "frac_reward_zero_std") == 1);
    }
}

// The returns are so large that the critic's gradient overflows. The policy's gradient does not,
// because advantages are whitened.
static void skipped_steps_of_the_critic_count(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN TOKENS "shift=-3e38\" --algo ppo.so "
                                           "--set algo.value_coef=1000 --set algo.minibatches=1 "
                                           "--set algo.epochs=2 --set algo.value_clip=0 "
                                           "--set value.critic=separate --set run.phases=1 "
                                           "--set run.dir=c"),
                     0);
    assert_true(first(t, "c", "optim/grad_norm") > 0); // the policy's steps were taken
    assert_true(first(t, "c", "optim/skipped_steps") == 2);
}

// If sampling restricts the support, the entropy is computed over the kept tokens. Here only one
// token is kept.
static void entropy_is_of_the_distribution_in_use(void **state) {
    struct e2e *t = *state;
    static const char *const support[] = {"full", "sampled"};
    for (int k = 0; k < 2; k++)
        assert_int_equal(e2e_run(t,
                                 RUN TOKENS "shift=0\" --algo ppo.so --set run.phases=1 "
                                            "--set algo.kl_placement=none --set sampling.top_k=1 "
                                            "--set algo.logprob_support=%s --set run.dir=%s",
                                 support[k], support[k]),
                         0);
    assert_true(first(t, "full", "policy/entropy_avg") > 5); // over 260 about equally likely tokens
    assert_true(fabs(first(t, "sampled", "policy/entropy_avg")) < 1e-6);
    assert_true(fabs(first(t, "sampled", "objective/entropy")) < 1e-6);
}

// If none of the judge's scores is finite, the mean is missing. It is not 0.
static void no_opinion_is_no_metric(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN TOKENS "shift=0\" --algo ppo.so --set run.phases=1 --judge "
                                           "\"$RLHF_TEST_PLUGINS/bad_reward.so:every=1\" "
                                           "--set rewards.nan_policy=zero --set run.dir=j"),
                     0);
    json_t *rows = e2e_metrics(t, "j");
    assert_null(json_object_get(json_array_get(rows, 0), "judge/mean"));
    assert_null(json_object_get(json_array_get(rows, 0), "judge/std"));
    json_decref(rows);
}

// The header of metrics.csv has every name, and the cells have the numbers of metrics.jsonl.
static void same_numbers(struct e2e *t, const char *run, size_t n) {
    json_t *rows = e2e_metrics(t, run), *v;
    const char *name;
    char *header = NULL, *line = NULL, *rest = NULL;
    assert_int_equal(json_array_size(rows), n);
    assert_int_equal(e2e_shell(t, "cat %s/metrics.csv", run), 0);
    header = strtok_r(t->out, "\n", &rest);
    for (size_t i = 0; i < n; i++) {
        char names[8192], *name_at = NULL;
        size_t cells = 0;
        line = strtok_r(NULL, "\n", &rest);
        assert_non_null(line);
        snprintf(names, sizeof names, "%s", header);
        for (char *h = strtok_r(names, ",", &name_at); h; h = strtok_r(NULL, ",", &name_at)) {
            const char *cell = strsep(&line, ",");
            assert_non_null(cell);
            v = json_object_get(json_array_get(rows, i), h);
            if (!v && *cell) fail_msg("%s of row %zu: %s, and there is none", h, i, cell);
            if (json_is_number(v) && strtod(cell, NULL) != json_number_value(v))
                fail_msg("%s of row %zu: %s", h, i, cell);
            if (json_is_null(v)) assert_string_equal(cell, "nan");
            cells += *cell != 0;
        }
        assert_null(line);
        assert_int_equal(cells, json_object_size(json_array_get(rows, i)));
    }
    json_object_foreach(json_array_get(rows, 0), name, v) assert_non_null(strstr(header, name));
    assert_null(strtok_r(NULL, "\n", &rest));
    json_decref(rows);
}

// After a roll-back, metrics.csv agrees with metrics.jsonl, too, even if the last remaining phase
// has more metric names than earlier ones. A process with log.csv=false leaves it as it is, and a
// later one fills it again.
static void a_table_of_the_same_numbers(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --set policy.init=random "
                                "--data texts.jsonl --set data.eval_path=texts.jsonl "
                                "--set data.eval_every=2 --set run.phases=3 --set log.csv=true "
                                "--set checkpoint.every=1 --set checkpoint.keep=0 --out c"),
                     0);
    same_numbers(t, "c", 3);
    assert_int_equal(e2e_shell(t, "grep -q '^phase,.*eval/loss' c/metrics.csv && "
                                  "head -n 2 c/metrics.csv | tail -n 1 >first && "
                                  "ln -sfn 000001 c/checkpoints/latest && "
                                  "cp c/metrics.csv old && "
                                  "\"$HOST\" --resume c --set run.stop_after=1 --set log.csv=false "
                                  "&& cmp c/metrics.csv old && "
                                  "\"$HOST\" --resume c --set log.csv=true && "
                                  "head -n 2 c/metrics.csv | tail -n 1 | cmp - first"),
                     0);
    same_numbers(t, "c", 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lengths_and_speed_are_of_responses, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(lengths_and_rewards, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(spread_of_rewards_in_every_scope, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(skipped_steps_of_the_critic_count, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(entropy_is_of_the_distribution_in_use, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(no_opinion_is_no_metric, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_table_of_the_same_numbers, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_metrics", tests, NULL, NULL);
}
