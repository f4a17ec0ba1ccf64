// test_e2e_rollout.c: runs ppo as a user does. The policy learns, sampling and training compute the
// same numbers, and a repeated run gives the same bits.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PPO                                                                                        \
    "--algo ppo.so --reward period_count.so --policy model --set policy.init=random "              \
    "--prompts prompts.txt --set sampling.max_new_tokens=8 --set optim.schedule_phases=40 "        \
    "--set batch.microbatch_tokens=128 --set log.samples=2 "

static void ppo_finds_the_period(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--set batch.size=64 --set optim.lr=0.005 --set algo.kl_coef=0 "
                                    "--set run.phases=40 --set run.dir=p"),
                     0);
    json_t *rows = e2e_metrics(t, "p");
    double first = 0, last = 0;
    for (int i = 0; i < 5; i++) {
        first += e2e_metric(rows, i, "objective/scores") / 5;
        last += e2e_metric(rows, -1 - i, "objective/scores") / 5;
    }
    json_decref(rows);
    if (!(last > first + 1)) fail_msg("mean reward went from %g to %g", first, last);
}

// The first ratio is 1 and the first KL is 0 because sampling, training and reference agree to the
// bit.
static void one_numerical_path(void **state) {
    struct e2e *t = *state;
    static const char *const dtypes[] = {"f32", "bf16"};
    for (int k = 0; k < 2; k++) {
        char run[16];
        snprintf(run, sizeof run, "p%d", k);
        assert_int_equal(e2e_run(t,
                                 PPO "--set batch.size=16 --set sampling.slots=5 --threads %d "
                                     "--set optim.lr=0.01 --set run.phases=4 "
                                     "--set compute.dtype=%s --set run.dir=%s",
                                 k + 1, dtypes[k], run),
                         0);
        json_t *rows = e2e_metrics(t, run);
        for (int i = 0; i < 4; i++) {
            assert_true(e2e_metric(rows, i, "sampling/logp_difference/max") == 0);
            assert_true(e2e_metric(rows, i, "sampling/logp_difference/mean") == 0);
        }
        assert_true(e2e_metric(rows, 0, "objective/kl") == 0);
        assert_true(e2e_metric(rows, 3, "objective/kl") != 0);
        json_decref(rows);
    }
}

static void same_seed_same_bits(void **state) {
    struct e2e *t = *state;
    const char *how =
        "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --set batch.size=12 "
        "--set optim.lr=0.01";
    assert_int_equal(e2e_run(t, PPO "%s --set run.phases=4 --set run.dir=a", how), 0);
    assert_int_equal(e2e_run(t, PPO "%s --set run.phases=4 --set run.dir=b --threads 2", how), 0);
    assert_int_equal(e2e_run(t, PPO "%s --set run.phases=2 --set run.dir=c", how), 0);
    assert_int_equal(e2e_run(t, "--resume c --set run.phases=4"), 0);
    assert_int_equal(e2e_run(t, "--resume c --set run.phases=2"), 0);
    e2e_says(t, "nothing to do: 4 phases are done and run.phases is 2");
    assert_int_equal(e2e_run(t, PPO "%s --set run.phases=4 --set run.dir=x --dry-run", how), 0);
    e2e_says(t, "dry run: all is set up for 4 phases; nothing was run or written");
    assert_false(e2e_exists(t, "x"));
    assert_int_equal(
        e2e_run(t, PPO "%s --set run.phases=4 --set run.dir=d --set sampling.slots=3", how), 0);
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
    e2e_same_tree(t, "a/checkpoints/000004", "c/checkpoints/000004");
    e2e_same_tree(t, "a/checkpoints/000004", "d/checkpoints/000004");
}

// Loss and gradient of a batch do not depend on its split into microbatches.
static void microbatches_do_not_matter(void **state) {
    struct e2e *t = *state;
    // Rows get the rewards 0 1 2 0 1 2 .., so the first phase already has a learning signal.
    const char *how =
        "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --set batch.size=12 "
        "--set run.phases=1 --set compute.dtype=f32 --set optim.max_grad_norm=0 "
        "--set algo.epochs=1 --set algo.minibatches=1";
    assert_int_equal(e2e_run(t, PPO "%s --set run.dir=a --set batch.microbatch_tokens=100000", how),
                     0);
    assert_int_equal(e2e_run(t, PPO "%s --set run.dir=b --set batch.microbatch_tokens=16", how), 0);
    json_t *a = e2e_metrics(t, "a"), *b = e2e_metrics(t, "b");
    static const char *const names[] = {"optim/grad_norm", "loss/total", "loss/value_avg",
                                        "objective/entropy"};
    for (size_t k = 0; k < 4; k++) {
        double x = e2e_metric(a, 0, names[k]), y = e2e_metric(b, 0, names[k]);
        if (!(x != 0 && fabs(x - y) <= 1e-6 * fabs(x)))
            fail_msg("%s is %.9g in one microbatch, %.9g in many", names[k], x, y);
    }
    json_decref(a);
    json_decref(b);
}

static void a_separate_critic_learns_and_resumes(void **state) {
    struct e2e *t = *state;
    const char *how =
        "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --set batch.size=12 "
        "--set value.critic=separate --set value.lr=0.01 --set value.kind=mlp";
    assert_int_equal(e2e_run(t, PPO "%s --set run.phases=4 --set run.dir=a", how), 0);
    assert_int_equal(e2e_run(t, PPO "%s --set run.phases=2 --set run.dir=b", how), 0);
    assert_int_equal(e2e_run(t, "--resume b --set run.phases=4"), 0);
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
    assert_true(e2e_exists(t, "a/checkpoints/000004/state/critic.safetensors"));
    json_t *rows = e2e_metrics(t, "a");
    assert_true(e2e_metric(rows, -1, "loss/value_avg") < e2e_metric(rows, 0, "loss/value_avg"));
    json_decref(rows);
}

static void several_rewards_are_mixed(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--reward ngram3.so:weight=-0.5 --set batch.size=8 "
                                    "--set run.phases=1 --set run.dir=r --set log.samples_every=1"),
                     0);
    json_t *rows = e2e_metrics(t, "r");
    double want = e2e_metric(rows, 0, "rewards/period_count/mean") -
                  0.5 * e2e_metric(rows, 0, "rewards/ngram3/mean");
    assert_true(fabs(e2e_metric(rows, 0, "objective/scores") - want) < 1e-5);
    json_decref(rows);
    assert_int_equal(e2e_shell(t, "test $(wc -l < r/samples.jsonl) -eq 2"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ppo_finds_the_period, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(one_numerical_path, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(microbatches_do_not_matter, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_separate_critic_learns_and_resumes, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(several_rewards_are_mixed, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_rollout", tests, NULL, NULL);
}
