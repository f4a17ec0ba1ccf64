// test_e2e_row_use.c: the backward pass skips rows of groups without spread, and truncated
// responses that are masked. This saves time and does not change the results.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PAID(options) "--reward \"$RLHF_TEST_PLUGINS/parity_reward.so" options "\" "
#define ANY                                                                                        \
    "--policy model --set policy.init=random "                                                     \
    "--prompts prompts.txt --set sampling.max_new_tokens=8 --set batch.size=16 "                   \
    "--set batch.microbatch_tokens=128 --set log.samples=0 --set optim.lr=0.01 "                   \
    "--set optim.schedule_phases=40 "
#define RUN   PAID("") ANY
#define GROUP RUN "--algo \"$RLHF_TEST_PLUGINS/group_algo.so\" "
#define GRPO  RUN "--algo grpo.so:group_size=2,kl_placement=none,epochs=2,minibatches=2 "

// An entropy coefficient above 0, however small, gives every row a derivative.
#define HARDLY "--set algo.entropy_coef=1e-40 "

static double sum_of(struct e2e *t, const char *run, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    double sum = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        sum += json_number_value(json_object_get(json_array_get(rows, i), name));
    json_decref(rows);
    return sum;
}

static int is_time(const char *name) {
    return strncmp(name, "time", 4) == 0 || strncmp(name, "perf", 4) == 0 || strstr(name, "/time");
}

// Every metric that `a` and `b` have in common, except times, agrees within `rel`.
static void same_metrics(struct e2e *t, const char *a, const char *b, double rel) {
    json_t *x = e2e_metrics(t, a), *y = e2e_metrics(t, b);
    const char *name;
    json_t *v;
    assert_int_equal(json_array_size(x), json_array_size(y));
    for (int i = 0; i < (int)json_array_size(x); i++)
        json_object_foreach(json_array_get(x, (size_t)i), name, v) {
            if (!json_is_number(v) || is_time(name)) continue;
            double p = json_number_value(v), q = e2e_metric(y, i, name);
            if (!(fabs(p - q) <= rel * (fabs(p) + 1e-3) + 1e-12)) // a KL is a small difference
                fail_msg("%s of row %d is %.17g and %.17g", name, i, p, q);
        }
    json_decref(x);
    json_decref(y);
}

// With one row per microbatch, the rows that are skipped would only add zeros to the sums. So a run
// that skips them has the same bits as a run that does not.
static void zeros_are_left_out(void **state) {
    struct e2e *t = *state;
    const char *how = GROUP "--set batch.microbatch_tokens=1 --set batch.share_prompts=false "
                            "--set algo.minibatches=2 --set run.phases=3";
    assert_int_equal(e2e_run(t, "%s --set algo.use=silent --set run.dir=all", how), 0);
    assert_int_equal(e2e_run(t, "%s --set algo.use=still --set run.dir=less", how), 0);
    e2e_same_tree(t, "all/checkpoints/000003/state", "less/checkpoints/000003/state");
    assert_int_equal(e2e_shell(t, "cmp all/checkpoints/000003/model.safetensors "
                                  "less/checkpoints/000003/model.safetensors"),
                     0);
    same_metrics(t, "all", "less", 0);
    assert_true(sum_of(t, "less", "optim/spared_rows") > 0);
    assert_true(sum_of(t, "less", "optim/spared_rows") < 3 * 2 * 16);
    assert_true(sum_of(t, "less", "time/spared") > 0);
    assert_true(sum_of(t, "all", "optim/spared_rows") == 0);
}

// The numbers are the same up to rounding, with and without shared prompts, for every loss.
static void nothing_changes_but_the_time(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--set algo.loss=grpo", "--set algo.loss=dapo --set batch.share_prompts=false",
        "--set algo.loss=bnpo --set algo.advantage_scope=minibatch",
        "--set algo.loss=cispo --set algo.old_logp=recompute",
        "--set algo.kl_placement=loss --set algo.kl_estimator=full --set algo.kl_coef=0"};
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf all less"), 0);
        assert_int_equal(e2e_run(t,
                                 GRPO HARDLY "%s --set run.phases=2 --set optim.lr=1e-4 "
                                             "--set compute.dtype=f32 --set run.dir=all",
                                 how[k]),
                         0);
        assert_int_equal(e2e_run(t,
                                 GRPO "%s --set run.phases=2 --set optim.lr=1e-4 "
                                      "--set compute.dtype=f32 --set run.dir=less",
                                 how[k]),
                         0);
        same_metrics(t, "all", "less", 1e-4);
        assert_true(sum_of(t, "all", "optim/spared_rows") == 0);
        assert_true(sum_of(t, "less", "optim/spared_rows") > 0);
    }
}

// If a term has a derivative for every token, no rows are skipped.
static void other_terms_keep_rows_in(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO "--set algo.kl_placement=loss --set algo.kl_coef=0.01 "
                                     "--set run.phases=1 --set run.dir=kl"),
                     0);
    assert_int_equal(e2e_run(t, GRPO "--set algo.entropy_coef=0.01 --set run.phases=1 "
                                     "--set run.dir=entropy"),
                     0);
    assert_int_equal(e2e_run(t, RUN "--algo ppo.so:group_size=2 --set run.phases=1 "
                                    "--set run.dir=critic"),
                     0);
    assert_true(sum_of(t, "kl", "frac_reward_zero_std") > 0);
    assert_true(sum_of(t, "kl", "optim/spared_rows") == 0);
    assert_true(sum_of(t, "entropy", "optim/spared_rows") == 0);
    assert_true(sum_of(t, "critic", "optim/spared_rows") == 0);
}

// In two of the four groups, both rows have the same parity and thus the same reward. So half of
// the rows are skipped in each epoch.
static void spared_rows_are_those_of_flat_groups(void **state) {
    struct e2e *t = *state;
    static const char *const algos[] = {
        "grpo.so:group_size=2,kl_placement=none,epochs=3",
        "ppo.so:advantage=group,group_size=2,kl_placement=none,epochs=3,minibatches=1",
        "rloo.so:group_size=2,kl_coef=0,epochs=3"};
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf r"), 0);
        assert_int_equal(e2e_run(t, RUN "--algo %s --set run.phases=2 --set run.dir=r", algos[k]),
                         0);
        json_t *rows = e2e_metrics(t, "r");
        for (int i = 0; i < 2; i++)
            assert_true(e2e_metric(rows, i, "optim/spared_rows") ==
                        3 * 16 * e2e_metric(rows, i, "frac_reward_zero_std"));
        char says[64];
        snprintf(says, sizeof says, "from 0 to 1; they differ in %.0f of 8 groups\n",
                 8 * (1 - e2e_metric(rows, 0, "frac_reward_zero_std")));
        assert_int_equal(e2e_count(t, says), 1);
        json_decref(rows);
    }
    e2e_says(t, "had nothing to teach and were left out of the backward pass");
}

// The last line counts the rows of all phases, also of those that left no row out.
static void rows_of_all_phases_count(void **state) {
    struct e2e *t = *state;
    char says[64];
    int some = 0;
    assert_int_equal(e2e_run(t, PAID(":levels=9") ANY
                             "--algo grpo.so:group_size=4,epochs=1 --set "
                             "algo.kl_placement=none --set run.phases=8 --set run.dir=r"),
                     0);
    json_t *rows = e2e_metrics(t, "r");
    for (size_t i = 0; i < 8; i++)
        some += json_object_get(json_array_get(rows, i), "optim/spared_rows") != NULL;
    json_decref(rows);
    assert_in_range(some, 1, 7);
    snprintf(says, sizeof says, "%.0f of %d rows of updates had nothing to teach",
             sum_of(t, "r", "optim/spared_rows"), 8 * 16);
    e2e_says(t, says);
}

static void same_seed_same_bits(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO "--set algo.mask_truncated=true --set sampling.stop=e "
                                     "--set run.phases=4 --set run.dir=a"),
                     0);
    assert_int_equal(e2e_run(t, GRPO "--set algo.mask_truncated=true --set sampling.stop=e "
                                     "--set run.phases=4 --threads 2 --set sampling.slots=3 "
                                     "--set run.dir=b"),
                     0);
    assert_int_equal(e2e_run(t, GRPO "--set algo.mask_truncated=true --set sampling.stop=e "
                                     "--set run.phases=2 --set run.dir=c"),
                     0);
    assert_int_equal(e2e_run(t, "--resume c --set run.phases=4"), 0);
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
    e2e_same_tree(t, "a/checkpoints/000004", "c/checkpoints/000004");
    same_metrics(t, "a", "c", 0);
}

// ---- truncated responses ----

// The metric of masked rows equals the share of unfinished responses. Updates do not use masked
// rows.
static void truncated_responses_are_masked(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO "--set algo.mask_truncated=true "
                                     "--set 'sampling.stop=[\"e\", \"t\", \"a\", \"i\"]' "
                                     "--set log.rollouts=true --set run.phases=2 --set run.dir=m"),
                     0);
    json_t *rows = e2e_metrics(t, "m");
    double masked = 0;
    for (int i = 0; i < 2; i++) {
        double share = e2e_metric(rows, i, "policy/masked_ratio");
        assert_true(share == e2e_metric(rows, i, "completions/clipped_ratio"));
        masked += 2 * 16 * share;
    }
    assert_true(masked > 0 && masked < 2 * 2 * 16);
    assert_true(sum_of(t, "m", "optim/spared_rows") >= masked);
    json_decref(rows);
    char line[64];
    snprintf(line, sizeof line, "test $(grep -c '\"masked\": \\[' m/rollouts.jsonl) -gt 0");
    assert_int_equal(e2e_shell(t, "%s", line), 0);
}

// If no response ends, nothing is learned, and the run continues.
static void all_may_be_masked(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO "--set algo.mask_truncated=true "
                                     "--set sampling.stop_at_eos=false --set run.phases=1 "
                                     "--set run.dir=m"),
                     0);
    json_t *rows = e2e_metrics(t, "m");
    assert_true(e2e_metric(rows, 0, "policy/masked_ratio") == 1);
    assert_true(e2e_metric(rows, 0, "optim/grad_norm") == 0);
    assert_true(e2e_metric(rows, 0, "optim/spared_rows") == 2 * 16);
    assert_true(e2e_metric(rows, 0, "loss/policy_avg") == 0);
    assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") == 0);
    assert_null(json_object_get(json_array_get(rows, 0), "time/spared")); // no measurement exists
    json_decref(rows);
}

// Sampled log-probs are compared in every phase, even if the first minibatch is masked. The
// comparison is made before that minibatch's step, because AdamW's momentum changes the weights
// even without a gradient.
static void masked_rows_are_compared(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--algo grpo.so:group_size=2,kl_placement=none,minibatches=8 "
                                    "--set algo.mask_truncated=true --set sampling.stop=e "
                                    "--set run.phases=6 --set log.rollouts=true --set run.dir=m"),
                     0);
    json_t *rows = e2e_metrics(t, "m");
    for (int i = 0; i < 6; i++)
        assert_true(e2e_metric(rows, i, "sampling/logp_difference/max") == 0);
    json_decref(rows);
}

// ---- minibatches of different sizes ----

static void uneven_minibatches_are_said(void **state) {
    struct e2e *t = *state;
    const char *one = RUN "--algo grpo.so:group_size=2,minibatches=3 --set run.phases=1 ";
    assert_int_equal(e2e_run(t, "%s --set run.dir=a", one), 0);
    e2e_says(t, "minibatches are uneven: batch.size=16 in 3 minibatches is 1 of 4 rows and 2 of 6 "
                "(whole groups)");
    e2e_says(t, "batch.size=18 is even");
    assert_int_equal(e2e_run(t, "%s --set batch.size=18 --set run.dir=b", one), 0);
    assert_null(strstr(t->out, "uneven"));
    one = RUN "--algo grpo.so:group_size=4,minibatches=5 --set run.phases=1 --dry-run ";
    assert_int_equal(e2e_run(t, "%s --set batch.size=12", one), 0);
    e2e_says(t, "batch.size=20 is even"); // 10 would be even too, but is not a multiple of 4
    assert_int_equal(e2e_run(t, "%s --set batch.size=20", one), 0);
    assert_null(strstr(t->out, "uneven"));
    assert_int_equal(e2e_run(t, RUN "--algo ppo.so:minibatches=5 --set run.phases=1 --dry-run"), 0);
    e2e_says(t, "batch.size=16 in 5 minibatches is 4 of 3 rows and 1 of 4; with most losses a row");
    e2e_says(t, "batch.size=15 is even");
}

// ---- phases without a learning signal ----

#define BY_PROMPT "--set prompts.prepend_bos=false "

static void flat_phases_are_warned_of_and_counted(void **state) {
    struct e2e *t = *state;
    const char *say = "phase 1: In 100 % of the groups all responses have the same reward";
    assert_int_equal(e2e_run(t, PAID(":prompt=true") ANY BY_PROMPT
                             "--algo grpo.so:group_size=4 --set run.phases=3 --set run.dir=f"),
                     0);
    assert_int_equal(e2e_count(t, say), 1);
    e2e_says(t, "algo.group_size");
    e2e_says(t, "phase 1: the rewards: parity_reward (");
    assert_int_equal(e2e_run(t, "--resume f --set run.phases=4"), 0);
    assert_int_equal(e2e_count(t, say), 0); // a warning of a run is not repeated by a resume
    json_t *rows = e2e_metrics(t, "f");
    for (int i = 0; i < 4; i++)
        assert_true(e2e_metric(rows, i, "optim/flat_phases") == i + 1);
    json_decref(rows);
    // A critic learns in a phase in which two prompts have different rewards.
    assert_int_equal(e2e_run(t, PAID(":prompt=true") ANY BY_PROMPT
                             "--algo ppo.so:group_size=4 --set run.phases=1 --set run.dir=p"),
                     0);
    assert_int_equal(e2e_count(t, "have the same reward"), 0);
}

// If all rows have equal rewards, the run learns nothing. This holds for every algorithm, with and
// without a critic.
static void a_constant_reward_is_named_under_any_algorithm(void **state) {
    struct e2e *t = *state;
    static const char *const algos[] = {"ppo.so",
                                        "ppo.so:group_size=4",
                                        "ppo.so:advantage=sequence",
                                        "ppo.so:advantage=sequence,group_size=2",
                                        "grpo.so:group_size=4",
                                        "rloo.so:group_size=4",
                                        "\"$RLHF_TEST_PLUGINS/group_algo.so\""};
    for (size_t k = 0; k < sizeof algos / sizeof *algos; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf c"), 0);
        assert_int_equal(
            e2e_run(t, PAID(":levels=1") ANY "--algo %s --set run.phases=3 --set run.dir=c",
                    algos[k]),
            0);
        assert_int_equal(
            e2e_count(t, "phase 1: All responses have the same reward (0), which teaches"), 1);
        assert_int_equal(e2e_count(t, "warning: phase 2: All"), 0);
        assert_int_equal(e2e_count(t, "no reward signal before training: all 16 responses have the "
                                      "reward 0\n"),
                         1);
        assert_int_equal(e2e_count(t, "phase 1: the rewards: parity_reward ("), 1);
        json_t *rows = e2e_metrics(t, "c");
        assert_true(e2e_metric(rows, 2, "optim/flat_phases") == 3);
        json_decref(rows);
    }
}

// With advantage=sequence, PPO compares all rows of a phase. So rows are skipped only if rewards
// are equal in the whole phase, not only within each group.
static void a_phase_is_one_group(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"ppo.so:advantage=sequence",
                                      "ppo.so:advantage=sequence,group_size=2"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(
            e2e_run(t, RUN "--algo %s --set run.phases=2 --set run.dir=spread%d", how[k], k), 0);
        assert_int_equal(e2e_count(t, "responses have the same reward"), 0);
        char run[16];
        snprintf(run, sizeof run, "spread%d", k);
        json_t *rows = e2e_metrics(t, run);
        for (int i = 0; i < 2; i++) // groups of two often have equal rewards
            assert_true(e2e_metric(rows, i, "frac_reward_zero_std") == 0);
        json_decref(rows);
    }
}

// ---- an algorithm with false declarations ----

static void still_rows_are_held_to_it(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GROUP "--set algo.use=lie --set run.phases=1 --set run.dir=x"), 1);
    e2e_says(t, "must be 0, because advantages() called the row RLHF_USE_NO_GRADIENT");
    assert_int_equal(e2e_run(t, GROUP "--set algo.use=unknown --set run.phases=1 --set run.dir=y"),
                     1);
    e2e_says(t, "advantages(): out->use[0] is 3; it must be from 0 to 2 (enum rlhf_row_use)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(zeros_are_left_out, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(nothing_changes_but_the_time, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(other_terms_keep_rows_in, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(spared_rows_are_those_of_flat_groups, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_of_all_phases_count, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(truncated_responses_are_masked, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(masked_rows_are_compared, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(uneven_minibatches_are_said, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(all_may_be_masked, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_constant_reward_is_named_under_any_algorithm, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(flat_phases_are_warned_of_and_counted, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_phase_is_one_group, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(still_rows_are_held_to_it, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_row_use", tests, NULL, NULL);
}
