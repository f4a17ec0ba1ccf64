// test_e2e_groups.c: runs with several responses per prompt. Shared prompts change only the time,
// groups stay whole, and unsuitable sizes are reported.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Rewards are 0 1 2 0 1 2 .., so the first phase already has a learning signal.
#define RUN                                                                                        \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --policy model "                     \
    "--set policy.init=random --prompts prompts.txt --set sampling.max_new_tokens=8 "              \
    "--set sampling.stop_at_eos=true --set optim.schedule_phases=40 --set batch.size=16 "          \
    "--set batch.microbatch_tokens=128 --set log.samples=16 --set log.samples_every=1 "            \
    "--set optim.lr=0.01 "
#define PPO RUN "--algo ppo.so:group_size=4 "

// Runs with the full KL, and with a separate critic.
static const char *const kinds[] = {
    PPO, PPO "--set algo.kl_placement=loss --set algo.kl_estimator=full ",
    PPO "--set value.critic=separate --set value.lr=0.01 "};

// Sampling, training and reference agree to the bit in four cases: with fewer slots than rows, with
// groups larger than the number of slots, with a number of slots that is not a multiple of the
// group size, and with one slot for all rows.
static void one_numerical_path(void **state) {
    struct e2e *t = *state;
    static const char *const dtypes[] = {"f32", "bf16"};
    static const int slots[] = {5, 3, 1, 16};
    for (int k = 0; k < 8; k++) {
        char run[16];
        snprintf(run, sizeof run, "p%d", k);
        assert_int_equal(e2e_run(t,
                                 "%s --set sampling.slots=%d --threads %d --set run.phases=3 "
                                 "--set compute.dtype=%s --set run.dir=%s",
                                 kinds[k % 2], slots[k / 2], 1 + k / 2 % 2, dtypes[(k + k / 4) % 2],
                                 run),
                         0);
        json_t *rows = e2e_metrics(t, run);
        for (int i = 0; i < 3; i++)
            assert_true(e2e_metric(rows, i, "sampling/logp_difference/max") == 0);
        // The full KL is measured during updates. By then, the policy has already changed.
        if (k % 2 == 0) assert_true(e2e_metric(rows, 0, "objective/kl") == 0);
        assert_true(e2e_metric(rows, 2, "objective/kl") != 0);
        json_decref(rows);
    }
}

// All metrics except times agree: gradient norms up to rel_grad, the others up to rel.
static void same_metrics(struct e2e *t, const char *a, const char *b, double rel, double rel_grad) {
    json_t *x = e2e_metrics(t, a), *y = e2e_metrics(t, b);
    const char *name;
    json_t *v;
    assert_int_equal(json_array_size(x), json_array_size(y));
    for (int i = 0; i < (int)json_array_size(x); i++)
        json_object_foreach(json_array_get(x, (size_t)i), name, v) {
            if (!json_is_number(v) || !strncmp(name, "time", 4) || !strncmp(name, "perf", 4) ||
                strstr(name, "/time"))
                continue;
            double p = json_number_value(v), q = e2e_metric(y, i, name);
            double r = strncmp(name, "optim/grad", 10) ? rel : rel_grad;
            if (!(fabs(p - q) <= r * fabs(p)))
                fail_msg("%s of row %d is %.17g and %.17g", name, i, p, q);
        }
    json_decref(x);
    json_decref(y);
}

// With learning rates of 0 all phases have the same weights. So all rollouts, and everything
// computed from them, are equal bit for bit.
static void sharing_changes_no_number(void **state) {
    struct e2e *t = *state;
    static const char *const dtypes[] = {"f32", "bf16"};
    for (int k = 0; k < 6; k++) {
        const char *still = "--set run.phases=3 --set optim.lr=0 --set value.lr=0";
        char on[16], off[16];
        snprintf(on, sizeof on, "on%d", k);
        snprintf(off, sizeof off, "off%d", k);
        assert_int_equal(e2e_run(t, "%s %s --set compute.dtype=%s --set run.dir=%s", kinds[k / 2],
                                 still, dtypes[k % 2], on),
                         0);
        assert_int_equal(e2e_run(t,
                                 "%s %s --set compute.dtype=%s --set run.dir=%s "
                                 "--set batch.share_prompts=false",
                                 kinds[k / 2], still, dtypes[k % 2], off),
                         0);
        assert_int_equal(e2e_shell(t, "cmp %s/samples.jsonl %s/samples.jsonl", on, off), 0);
        // In bf16 a shared prompt's gradient is rounded once, not once per row.
        same_metrics(t, on, off, 1e-9, k % 2 ? 1e-3 : 1e-6);
    }
}

// sampled() returns the number of tokens that the model processed while it sampled the first phase.
// trained() returns the number of tokens that it processed in training, in all epochs.
static double sampled(struct e2e *t, const char *run) {
    json_t *rows = e2e_metrics(t, run);
    double n = e2e_metric(rows, 0, "perf/rollout_model_tokens_per_s") *
               e2e_metric(rows, 0, "time/rollout");
    json_decref(rows);
    return n;
}

static double trained(struct e2e *t, const char *run) {
    json_t *rows = e2e_metrics(t, run);
    double n = e2e_metric(rows, 0, "perf/train_tokens_per_s") * e2e_metric(rows, 0, "time/update");
    json_decref(rows);
    return n;
}

// In the tiny model, the four prompts have 6 to 14 tokens.
static void a_prompt_goes_through_the_model_once(void **state) {
    struct e2e *t = *state;
    const char *how = "--set algo.minibatches=1 --set algo.epochs=2 --set run.phases=1 "
                      "--set batch.microbatch_tokens=100000";
    assert_int_equal(e2e_run(t, PPO "%s --set run.dir=on", how), 0);
    assert_int_equal(e2e_run(t, PPO "%s --set run.dir=off --set batch.share_prompts=false", how),
                     0);
    // There are 4 groups. In each, 3 rows save the prompt except its last token.
    json_t *rows = e2e_metrics(t, "off");
    double responses = e2e_metric(rows, 0, "completions/mean_length") * 16;
    json_decref(rows);
    double prompts = trained(t, "off") / 2 - responses;
    double saved = 0.75 * (prompts - 16);
    assert_true(prompts > 6 * 16 && prompts < 14 * 16);
    assert_true(fabs(sampled(t, "off") - sampled(t, "on") - saved) < 0.1);
    assert_true(fabs(trained(t, "off") - trained(t, "on") - 2 * saved) < 0.1);
    assert_int_equal(e2e_shell(t, "cmp on/samples.jsonl off/samples.jsonl"), 0);
}

// When a reward model is trained, the responses of a preference row share the row's prompt.
static void preferences_share_their_prompt(void **state) {
    struct e2e *t = *state;
    const char *how = "--algo bradley_terry.so --policy model --set policy.init=random "
                      "--data pairs.jsonl --set batch.size=4 --set run.phases=3 --set optim.lr=0 "
                      "--set score.calibrate=0 --set compute.dtype=f32";
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was the film\", \"chosen\": \" good\", \"rejected\": \" bad\"}\n"
              "{\"prompt\": \"I think it\", \"chosen\": \" is fine\", \"rejected\": \"x\"}\n"
              "{\"prompt\": \"Some say\", \"chosen\": \" a\", \"rejected\": \" long answer\"}\n"
              "{\"prompt\": \"Q\", \"chosen\": \"yes\", \"rejected\": \"no\"}\n");
    assert_int_equal(e2e_run(t, "%s --set run.dir=on", how), 0);
    assert_int_equal(e2e_run(t, "%s --set run.dir=off --set batch.share_prompts=false", how), 0);
    same_metrics(t, "on", "off", 1e-9, 1e-6);
    // One of two rows saves the prompt except its last token. The prompts have 13, 8 and 8 tokens.
    assert_true(fabs(trained(t, "off") - trained(t, "on") - (12 + 7 + 7)) < 0.1);
}

static void same_seed_same_bits(void **state) {
    struct e2e *t = *state;
    for (int k = 0; k < 3; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf a b c"), 0);
        const char *how = kinds[k];
        assert_int_equal(e2e_run(t, "%s --set run.phases=4 --set run.dir=a", how), 0);
        assert_int_equal(e2e_run(t,
                                 "%s --set run.phases=4 --set run.dir=b --threads 2 "
                                 "--set sampling.slots=3",
                                 how),
                         0);
        assert_int_equal(e2e_run(t, "%s --set run.phases=2 --set run.dir=c", how), 0);
        assert_int_equal(e2e_run(t, "--resume c --set run.phases=4"), 0);
        e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
        e2e_same_tree(t, "a/checkpoints/000004", "c/checkpoints/000004");
    }
}

// If there are enough groups, they stay whole. Otherwise single rows are distributed.
static void groups_stay_whole(void **state) {
    struct e2e *t = *state;
    static const struct {
        int minibatches, split;
    } cases[] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 1}};
    static const double stale[] = {16, 16 * 0.5 + 16 * 2.5};
    for (int k = 0; k < 5; k++) {
        char run[16];
        snprintf(run, sizeof run, "g%d", k);
        assert_int_equal(e2e_run(t,
                                 RUN "--algo \"$RLHF_TEST_PLUGINS/group_algo.so\" "
                                     "--set algo.minibatches=%d --set run.phases=2 "
                                     "--set run.dir=%s",
                                 cases[k].minibatches, run),
                         0);
        json_t *rows = e2e_metrics(t, run);
        assert_true(e2e_metric(rows, 1, "test/minibatches") == 2 * cases[k].minibatches);
        assert_int_equal(e2e_metric(rows, 1, "test/split_groups") > 0, cases[k].split);
        assert_true(e2e_metric(rows, 1, "test/apart") == 0);
        // `drawn` and `stale` are sums over the 16 rows in each of the 2 epochs. `drawn` adds up
        // the number of steps before a row was sampled. Rows of the second phase were sampled after
        // two epochs, so after 2 * minibatches steps. `stale` adds up the number of steps since a
        // row was sampled, which grows by one with each minibatch.
        assert_true(e2e_metric(rows, 1, "test/drawn") == 2 * 16 * 2 * cases[k].minibatches);
        if (k < 2) assert_true(e2e_metric(rows, 1, "test/stale") == stale[k]);
        assert_true(e2e_metric(rows, 1, "test/foreign") == 0);
        assert_true(e2e_metric(rows, 1, "sampling/logp_difference/max") == 0);
        json_decref(rows);
    }
}

// Every fifth row is dropped: groups of three and four remain, and the run continues.
static void rows_may_be_dropped(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=5\" --policy model "
                   "--algo ppo.so:group_size=4 --set policy.init=random --prompts prompts.txt "
                   "--set sampling.max_new_tokens=8 --set batch.size=16 --set run.phases=2 "
                   "--set rewards.nan_policy=drop --set run.dir=d"),
        0);
    json_t *rows = e2e_metrics(t, "d");
    assert_true(e2e_metric(rows, 1, "sampling/logp_difference/max") == 0);
    json_decref(rows);
}

// Six of eight rows are left for eight minibatches. So there are only six minibatches, and loss()
// gets this number.
static void the_loss_knows_how_many_minibatches_there_are(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=4\" --policy model "
                   "--algo \"$RLHF_TEST_PLUGINS/group_algo.so\" --set algo.group_size=1 "
                   "--set algo.minibatches=8 --set policy.init=random --prompts prompts.txt "
                   "--set sampling.max_new_tokens=8 --set batch.size=8 --set run.phases=1 "
                   "--set rewards.nan_policy=drop --set run.dir=m"),
        0);
    json_t *rows = e2e_metrics(t, "m");
    assert_true(e2e_metric(rows, 0, "test/minibatches") == 2 * 6); // two epochs
    assert_true(e2e_metric(rows, 0, "test/minibatches_said") == 6);
    json_decref(rows);
}

static void what_does_not_fit_is_said(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--algo ppo.so:group_size=5 --set run.dir=x"), 2);
    e2e_says(t, "batch.size is 16; it must be a multiple of the group size 5 and at "
                "least the number of minibatches 4; the nearest is 15");
    assert_int_equal(e2e_run(t, RUN "--algo \"$RLHF_TEST_PLUGINS/group_algo.so\" "
                                    "--set algo.minibatches=8 --set algo.whole=true "
                                    "--set run.dir=x"),
                     2);
    e2e_says(t, "batch.size 16 is 4 groups of 4, fewer than the 8 minibatches");
    e2e_says(t, "at least 32 is needed");
    assert_int_equal(e2e_run(t, RUN "--algo grpo.so:group_size=8 --set algo.minibatches=4 "
                                    "--set algo.advantage_scope=minibatch --set run.dir=x"),
                     2);
    e2e_says(t, "grpo.so does not split a group");
    assert_int_equal(e2e_exists(t, "x"), 0);
}

// `generate --n` computes the prompt once for all texts. Each text is the same as when it
// is generated alone.
static void generate_shares_its_prompt(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--set run.phases=1 --set run.dir=p"), 0);
    const char *how = "generate --model p/checkpoints/latest --prompt \"the thing in it\" "
                      "--max-new 6 --json";
    assert_int_equal(e2e_run(t, "%s --n 70 > many.jsonl", how), 0);
    assert_int_equal(e2e_run(t, "%s --n 1 > one.jsonl", how), 0);
    assert_int_equal(e2e_shell(t, "test $(wc -l < many.jsonl) -eq 70 && head -n 1 many.jsonl | "
                                  "cmp - one.jsonl"),
                     0);
}

// Samples are spread over the rewards, lowest first, and have one column per reward.
static void samples_are_spread_over_the_rewards(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--set log.samples=3 --set run.phases=1 --set run.dir=a "
                                    "--reward period_count.so"),
                     0);
    e2e_says(t, "   reward  bad_re...  period...   ref logp  text of phase 1\n");
    // bad_reward gives 0, 1 and 2 in turn. period_count gives 0 here.
    assert_int_equal(e2e_shell(t, "grep -o '\"rewards\": [^}]*' a/samples.jsonl"), 0);
    assert_string_equal(t->out, "\"rewards\": {\"bad_reward\": 0, \"period_count\": 0\n"
                                "\"rewards\": {\"bad_reward\": 1, \"period_count\": 0\n"
                                "\"rewards\": {\"bad_reward\": 2, \"period_count\": 0\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_numerical_path, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(sharing_changes_no_number, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_prompt_goes_through_the_model_once, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(preferences_share_their_prompt, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(groups_stay_whole, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_may_be_dropped, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_loss_knows_how_many_minibatches_there_are, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(samples_are_spread_over_the_rewards, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_said, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(generate_shares_its_prompt, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_groups", tests, NULL, NULL);
}
