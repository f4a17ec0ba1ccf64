// test_e2e_overlap.c: with rewards.overlap, the host calls rewards on a second thread while other
// responses are sampled. The run ends with the same bytes, and the setting is refused if it has no
// effect. Also tests rlhf.limits/1, with which a reward declares that it works outside the process.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define REWARD(name, options) "--reward \"$RLHF_TEST_PLUGINS/" name "_reward.so:" options "\" "
#define ANY                                                                                        \
    "--policy model --set policy.init=random --prompts prompts.txt --set batch.size=16 "           \
    "--set sampling.max_new_tokens=6 --set sampling.slots=3 --set optim.lr=0.01 "                  \
    "--set log.tensorboard=false --set run.phases=2 --set rewards.isolate=never "
#define GRPO    ANY "--algo grpo.so:group_size=4,kl_placement=none,epochs=1 "
#define PPO     ANY "--algo ppo.so "
#define RETRY   "--set rewards.on_failure=retry "
#define OVERLAP "--set rewards.overlap=true "

static double metric(struct e2e *t, const char *run, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    const double v = e2e_metric(rows, 1, name);
    json_decref(rows);
    return v;
}

static void the_same_end(struct e2e *t, const char *a, const char *b) {
    assert_int_equal(e2e_shell(t,
                               "for f in model.safetensors state/optimizer.safetensors "
                               "state/run.json; do cmp %s/checkpoints/000002/$f "
                               "%s/checkpoints/000002/$f || exit 1; done",
                               a, b),
                     0);
}

static void no_byte_changes(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        GRPO REWARD("outside", "tokens=true"), PPO REWARD("alone", "tokens=true"),
        GRPO "--set algo.dynamic_sampling=true " REWARD("alone", "seed=1"),
        GRPO REWARD("outside", "name=a") REWARD("alone", "name=b,seed=2,weight=-0.5")
            REWARD("faulty", "name=c"), // called after sampling, as without overlap
        GRPO
        "--set response.truncate=period --set response.period_min=1 " REWARD("outside", "seed=1")};
    static const char *const name[] = {"outside_reward", "alone_reward", "alone_reward", "b",
                                       "outside_reward"};
    char plain[8], early[8], thread[64];
    for (int k = 0; k < (int)(sizeof how / sizeof *how); k++) {
        snprintf(plain, sizeof plain, "p%d", k);
        snprintf(early, sizeof early, "e%d", k);
        snprintf(thread, sizeof thread, "rewards/%s/other_thread", name[k]);
        if (e2e_run(t, "%s --set run.dir=%s", how[k], plain) != 0) fail_msg("%s", t->out);
        assert_int_equal(e2e_run(t, "%s " OVERLAP "--set run.dir=%s", how[k], early), 0);
        the_same_end(t, plain, early);
        assert_true(metric(t, plain, thread) == 0);
        assert_true(metric(t, early, thread) == 1);
        assert_true(metric(t, plain, "objective/scores") == metric(t, early, "objective/scores"));
    }
}

// Early failures are handled like late ones.
static void failures_follow_the_settings(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"rows", "status", "nan"};
    char run[8];
    assert_int_equal(e2e_run(t, GRPO REWARD("outside", "how=none") "--set run.dir=c"), 0);
    for (int k = 0; k < 3; k++) {
        snprintf(run, sizeof run, "r%d", k);
        assert_int_equal(
            e2e_run(t, GRPO RETRY OVERLAP REWARD("outside", "how=%s,times=2") "--set run.dir=%s",
                    how[k], run),
            0);
        e2e_says(t, "rewards.on_failure says retry: scoring again, 1 of 3");
        the_same_end(t, "c", run);
    }
    assert_int_equal(
        e2e_run(t, GRPO OVERLAP REWARD("outside", "how=rows,phase=2") "--set run.dir=s"), 1);
    e2e_says(t, "score(), phase 2: nobody answers (row");
    e2e_says(t, "rewards.on_failure says stop");
    e2e_says(t, "1 phase is kept");
    for (int k = 0; k < 2; k++)
        assert_int_equal(e2e_run(t,
                                 GRPO "%s --set rewards.on_failure=zero --set run.dir=z%d " REWARD(
                                     "alone", "how=rows"),
                                 k ? OVERLAP : "", k),
                         0);
    the_same_end(t, "z0", "z1");
    assert_true(metric(t, "z0", "rewards/alone_reward/failures") > 0);
    assert_true(metric(t, "z0", "rewards/alone_reward/failures") ==
                metric(t, "z1", "rewards/alone_reward/failures"));
}

// The metric of the reward's time includes early calls.
static void early_calls_take_time(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO OVERLAP REWARD("alone", "how=none,pause=2") "--set run.dir=a"),
                     0);
    assert_true(metric(t, "a", "rewards/alone_reward/other_thread") == 1);
    assert_true(metric(t, "a", "rewards/alone_reward/time") >= 16 * 0.002);
}

static void settings_reach_the_reward(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t,
                GRPO RETRY REWARD(
                    "outside", "how=none") "--set run.dir=a "
                                           "--set rewards.timeout_s=7.5 --set rewards.memory_mib=3 "
                                           "--set rewards.retries=2"),
        0);
    assert_true(metric(t, "a", "rewards/outside_reward/timeout") == 7.5);
    assert_true(metric(t, "a", "rewards/outside_reward/memory") == 3 * 1048576.0);
    assert_true(metric(t, "a", "rewards/outside_reward/tries") == 2);
    assert_int_equal(e2e_run(t, GRPO REWARD("outside", "how=none") "--set run.dir=b"), 0);
    assert_true(metric(t, "b", "rewards/outside_reward/timeout") == 300);
    assert_true(metric(t, "b", "rewards/outside_reward/memory") == 0);
    assert_true(metric(t, "b", "rewards/outside_reward/tries") == 0);
}

// A reward inside the process does not use the limits, so setting them is refused.
static void what_cannot_act_is_refused(void **state) {
    struct e2e *t = *state;
    static const char *const idle[] = {"timeout_s=9", "memory_mib=64", "overlap=true"};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(e2e_run(t,
                                 GRPO "--reward period_count.so --set rewards.%s "
                                      "--set run.dir=x",
                                 idle[k]),
                         2);
        e2e_says(t, k < 2 ? "the process" : "rewards.overlap");
        assert_false(e2e_exists(t, "x"));
    }
    assert_int_equal(e2e_run(t, GRPO "--reward period_count.so --set rewards.timeout_s=9 --judge "
                                     "\"$RLHF_TEST_PLUGINS/outside_reward.so\" --set run.dir=y"),
                     0);
}

// A reward that may be called early runs on another thread then. It cannot use models, which may be
// sampling at that time. So it does not depend on rewards.overlap whether the reward works.
static void a_reward_that_uses_models_is_refused(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"", OVERLAP, "--set rewards.isolate=always "};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(
            e2e_run(t, GRPO "--reward \"$RLHF_TEST_PLUGINS/untrue_reward.so\" %s--set run.dir=x",
                    how[k]),
            2);
        e2e_says(t, "a reward with RLHF_REWARD_EXTERNAL cannot use models");
        assert_false(e2e_exists(t, "x"));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, e2e_setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(no_byte_changes),
        TEST(failures_follow_the_settings),
        TEST(early_calls_take_time),
        TEST(settings_reach_the_reward),
        TEST(what_cannot_act_is_refused),
        TEST(a_reward_that_uses_models_is_refused),
    };
    return cmocka_run_group_tests_name("e2e_overlap", tests, NULL, NULL);
}
