// test_e2e_dynamic.c: dynamic sampling: groups without spread are replaced by responses to further
// prompts. This happens in rounds, and is reproducible.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define PAID(options) "--reward \"$RLHF_TEST_PLUGINS/parity_reward.so" options "\" "
#define ANY                                                                                        \
    "--set prompts.prepend_bos=true --policy model --set policy.init=random --prompts "            \
    "prompts.txt --set log.samples=16 --set compute.dtype=f32 "                                    \
    "--set sampling.max_new_tokens=6 --set batch.size=16 --set optim.lr=0.01 "                     \
    "--set optim.schedule_phases=40 --algo grpo.so:group_size=2,kl_placement=none,epochs=1 "
#define RUN     PAID("") ANY
#define DYNAMIC RUN "--set algo.dynamic_sampling=true "

// Rows of the first phase; new reference.
static json_t *rollouts(struct e2e *t, const char *run) {
    assert_int_equal(
        e2e_shell(t, "grep '\"phase\": 1, \"row\"' %s/rollouts.jsonl > rows.jsonl", run), 0);
    json_t *rows = e2e_lines(t, "rows.jsonl");
    assert_int_equal(json_array_size(rows), 16);
    return rows;
}

static double score(const json_t *rows, size_t i) {
    return json_number_value(json_object_get(json_array_get(rows, i), "score"));
}

static int same(const json_t *a, size_t i, const json_t *b, size_t k, const char *key) {
    return json_equal(json_object_get(json_array_get(a, i), key),
                      json_object_get(json_array_get(b, k), key));
}

// Groups that have spread in the run without dynamic sampling come first in the batch, unchanged.
// After them come groups with spread from further prompts.
static void groups_without_spread_are_replaced(void **state) {
    struct e2e *t = *state;
    const char *how = "--set log.rollouts=true --set run.phases=1";
    size_t kept = 0;
    assert_int_equal(e2e_run(t, RUN "%s --set run.dir=plain", how), 0);
    assert_int_equal(e2e_run(t, DYNAMIC "%s --set run.dir=fresh", how), 0);
    json_t *a = rollouts(t, "plain"), *b = rollouts(t, "fresh");
    for (size_t i = 0; i < 16; i += 2) {
        assert_true(score(b, i) != score(b, i + 1));
        assert_true(same(b, i, b, i + 1, "group"));
        assert_true(same(b, i, b, i + 1, "prompt"));
        if (i) assert_false(same(b, i - 1, b, i, "group"));
        if (score(a, i) == score(a, i + 1)) continue;
        assert_true(same(a, i, b, kept, "ids") && same(a, i + 1, b, kept + 1, "ids"));
        assert_true(same(a, i, b, kept, "logp_sampled"));
        kept += 2;
    }
    assert_true(kept > 0 && kept < 16);
    // metrics of the first round are not compared with metrics of the rows that were trained on
    assert_int_equal(e2e_shell(t, "$HOST verify fresh --all --backend reference"), 0);
    json_decref(a);
    json_decref(b);
    json_t *rows = e2e_metrics(t, "fresh");
    assert_true(e2e_metric(rows, 0, "frac_reward_zero_std") == 0);
    assert_true(e2e_metric(rows, 0, "sampling/flat_left") == 0);
    assert_true(e2e_metric(rows, 0, "sampling/logp_difference/max") == 0);
    json_decref(rows);
}

// Prompts and rows of all rounds are counted. Metrics of responses cover only the first round,
// because it is an unbiased sample.
static void what_was_drawn_is_counted(void **state) {
    struct e2e *t = *state;
    static const char *const first[] = {"objective/scores", "completions/mean_length",
                                        "completions/distinct_3", "rewards/parity_reward/mean",
                                        "rewards/parity_reward/rows"};
    assert_int_equal(e2e_run(t, RUN "--set run.phases=1 --set run.dir=plain"), 0);
    assert_int_equal(e2e_run(t, DYNAMIC "--set run.phases=3 --set run.dir=fresh"), 0);
    json_t *a = e2e_metrics(t, "plain"), *b = e2e_metrics(t, "fresh");
    double prompts = 0;
    for (size_t k = 0; k < sizeof first / sizeof *first; k++)
        assert_true(e2e_metric(a, 0, first[k]) == e2e_metric(b, 0, first[k]));
    for (int i = 0; i < 3; i++) {
        double drawn = e2e_metric(b, i, "sampling/prompts");
        double rounds = e2e_metric(b, i, "sampling/fresh_rounds");
        prompts += drawn;
        assert_true(rounds > 0 && rounds <= 10 && drawn > 8);
        // In all rounds together, eight groups had spread. flat_ratio is the share of the other
        // groups.
        assert_true(e2e_metric(b, i, "sampling/flat_ratio") == (drawn - 8) / drawn);
        assert_true(e2e_metric(b, i, "episode") == 2 * prompts);
        assert_true(e2e_metric(b, i, "epoch") == prompts / 4); // four prompts in the file
    }
    assert_null(json_object_get(json_array_get(a, 0), "sampling/prompts"));
    json_decref(a);
    json_decref(b);
}

// If no group has spread, the host stops after a limited number of rounds. It then uses the rows of
// the first round, and reports this in one message.
static void the_rounds_are_bounded(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PAID(":levels=1") ANY "--set algo.dynamic_sampling=true "
                                                      "--set algo.dynamic_rounds=3 "
                                                      "--set run.phases=2 --set run.dir=r"),
                     0);
    const char *say = "after 3 rounds of fresh prompts, 8 groups still have no spread and stay";
    e2e_says(t, say);
    assert_null(strstr(strstr(t->out, say) + 1, say));
    json_t *rows = e2e_metrics(t, "r");
    for (int i = 0; i < 2; i++) {
        assert_true(e2e_metric(rows, i, "sampling/fresh_rounds") == 3);
        assert_true(e2e_metric(rows, i, "sampling/prompts") == 4 * 8);
        assert_true(e2e_metric(rows, i, "sampling/flat_ratio") == 1);
        assert_true(e2e_metric(rows, i, "sampling/flat_left") == 8);
        assert_true(e2e_metric(rows, i, "episode") == (i + 1) * 4 * 16);
        assert_true(e2e_metric(rows, i, "optim/spared_rows") == 16);
    }
    json_decref(rows);
}

static void same_seed_same_bits(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "", "--set algo.minibatches=2 --set algo.epochs=2 --set batch.microbatch_tokens=64",
        "--set sampling.top_k=20 --set algo.logprob_support=sampled --set algo.mask_truncated=true "
        "--set \"sampling.stop=[$(seq -s, 60 120)]\""};
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf a b c"), 0);
        assert_int_equal(e2e_run(t, DYNAMIC "%s --set run.phases=4 --set run.dir=a", how[k]), 0);
        assert_int_equal(e2e_run(t,
                                 DYNAMIC "%s --set run.phases=4 --set run.dir=b --threads 2 "
                                         "--set sampling.slots=3",
                                 how[k]),
                         0);
        assert_int_equal(e2e_run(t, DYNAMIC "%s --set run.phases=2 --set run.dir=c", how[k]), 0);
        assert_int_equal(e2e_run(t, "--resume c --set run.phases=4"), 0);
        e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
        e2e_same_tree(t, "a/checkpoints/000004", "c/checkpoints/000004");
        json_t *rows = e2e_metrics(t, "a");
        for (int i = 0; i < 4; i++)
            assert_true(e2e_metric(rows, i, "sampling/logp_difference/max") == 0);
        json_decref(rows);
    }
}

// Tests dynamic sampling with rloo.so, with and without a KL in the reward, and with masked
// truncated responses.
static void leave_one_out(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"--set algo.kl_coef=0",
                                      "--set algo.mask_truncated=true --set "
                                      "\"sampling.stop=[$(seq -s, 60 120)]\""};
#define RLOO PAID("") ANY "--algo rloo.so:group_size=2,dynamic_sampling=true "
    for (size_t k = 0; k < sizeof how / sizeof *how; k++) {
        assert_int_equal(e2e_shell(t, "rm -rf a c"), 0);
        assert_int_equal(e2e_run(t, RLOO "%s --set run.phases=3 --set run.dir=a", how[k]), 0);
        assert_int_equal(e2e_run(t, RLOO "%s --set run.phases=1 --set run.dir=c", how[k]), 0);
        assert_int_equal(e2e_run(t, "--resume c --set run.phases=3"), 0);
        e2e_same_tree(t, "a/checkpoints/000003", "c/checkpoints/000003");
        json_t *rows = e2e_metrics(t, "a");
        double masked = 0;
        for (int i = 0; i < 3; i++) {
            assert_true(e2e_metric(rows, i, "sampling/fresh_rounds") > 0);
            assert_true(e2e_metric(rows, i, "frac_reward_zero_std") == 0);
            assert_true(e2e_metric(rows, i, "sampling/flat_left") == 0);
            if (k) masked += e2e_metric(rows, i, "policy/masked_ratio");
        }
        assert_true(k ? masked > 0 && masked < 3 : masked == 0);
        json_decref(rows);
    }
    assert_int_equal(e2e_run(t, PAID("") ANY "--algo rloo.so:group_size=2,dynamic_rounds=3 --set "
                                             "run.dir=x"),
                     2);
    e2e_says(t, "dynamic_sampling is false");
}

// Every sample has a unique number: one prompt used repeatedly gives different texts.
static void no_draw_comes_twice(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "prompts.txt", "It was\n");
    assert_int_equal(e2e_run(t, DYNAMIC "--set log.rollouts=true --set run.phases=1 "
                                        "--set run.dir=r"),
                     0);
    json_t *rows = rollouts(t, "r");
    for (size_t i = 0; i < 16; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(same(rows, i, rows, k, "ids"));
    json_decref(rows);
}

// Shared prompts do not change the samples.
static void sharing_changes_no_draw(void **state) {
    struct e2e *t = *state;
    const char *how = "--set log.rollouts=true --set run.phases=1";
    assert_int_equal(e2e_run(t, DYNAMIC "%s --set run.dir=on", how), 0);
    assert_int_equal(
        e2e_run(t, DYNAMIC "%s --set batch.share_prompts=false --set run.dir=off", how), 0);
    assert_int_equal(e2e_shell(t, "for r in on off; do grep '\"row\"' $r/rollouts.jsonl > $r.rows; "
                                  "done; cmp on.rows off.rows"),
                     0);
}

// Rows may be dropped in any round. The other rows of their group stay in the batch, unless only
// one row is left, which cannot have a spread.
static void rows_may_be_dropped(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=3\" " ANY
                                "--set algo.dynamic_sampling=true --set run.phases=2 "
                                "--set rewards.nan_policy=drop --set run.dir=d"),
                     0);
    json_t *rows = e2e_metrics(t, "d");
    for (int i = 0; i < 2; i++)
        assert_true(e2e_metric(rows, i, "frac_reward_zero_std") ==
                    e2e_metric(rows, i, "sampling/flat_left") / 8);
    json_decref(rows);
}

static void what_does_not_fit_is_said(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, DYNAMIC "--set rewards.normalize=before --set run.dir=x"), 2);
    e2e_says(t, "rewards.normalize=before needs all of them at once");
    assert_int_equal(e2e_run(t, RUN "--set algo.dynamic_rounds=3 --set run.dir=x"), 2);
    e2e_says(t, "dynamic_sampling is false");
    assert_int_equal(e2e_run(t, RUN "--set algo.dynamic_sampling=true "
                                    "--set algo.dynamic_rounds=0 --set run.dir=x"),
                     2);
    e2e_says(t, "dynamic_rounds");
    assert_int_equal(e2e_exists(t, "x"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_without_spread_are_replaced, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(what_was_drawn_is_counted, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_rounds_are_bounded, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(leave_one_out, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(no_draw_comes_twice, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(sharing_changes_no_draw, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_may_be_dropped, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_said, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_dynamic", tests, NULL, NULL);
}
