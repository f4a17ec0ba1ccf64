// test_e2e_rules.c: a run enforces the contract's rules. It names the plugin, the function and the
// rule, in the host's process as in a worker.
#include "e2e.h"

#include "plugin/metric_names.h"

#include <stdio.h>

#define RUN                                                                                        \
    "--policy model --set policy.init=random --prompts prompts.txt --set batch.size=8 "            \
    "--set sampling.max_new_tokens=4 --set optim.lr=0.01 --phases 3 --out r "
#define ALGO                                                                                       \
    RUN "--reward \"$RLHF_TEST_PLUGINS/wild_reward.so\" "                                          \
        "--algo \"$RLHF_TEST_PLUGINS/careless_algo.so:how=%s\""
#define WILD RUN "--algo ppo.so --reward \"$RLHF_TEST_PLUGINS/wild_reward.so:phase=1,how=%s%s\""

static int run(struct e2e *t, const char *how) {
    e2e_shell(t, "rm -rf r");
    return e2e_run(t, ALGO, how);
}

static void a_broken_rule_ends_the_run(void **state) {
    struct e2e *t = *state;
    static const char past[] = "it wrote past the end of ";
    static const struct {
        const char *how, *function, *says;
    } cases[] = {{"past_advantage", "advantages()", "out->advantage"},
                 {"past_returns", "advantages()", "out->returns"},
                 {"past_use", "advantages()", "out->use"},
                 {"past_carry", "advantages()", "out->carry_row"},
                 {"past_logp", "loss()", "out->d_heads->logp"},
                 {"change_in", "loss()", "it changes byte 4 of the host's rlhf_loss_in; a plugin"},
                 {"change_heads", "loss()", "it changes byte 8 of the host's rlhf_head_values"},
                 {"change_slopes", "loss()", "it changes byte 4 of the host's rlhf_head_gradients"},
                 {"change_rollout", "advantages()", "it changes byte 8 of the host's rlhf_rollout"},
                 {"change_step", "minibatch_end()", "it changes byte 12 of the host's"},
                 {"reduce", "loss()", "it called reduce(), which is not allowed in loss()"},
                 {"reduce_thread", "advantages()", "it called reduce() on a thread of its own"}};
    static const struct {
        const char *how, *says;
    } values[] = {
        {"use", "advantages(): out->use[1] is 3; it must be from 0 to 2 (enum rlhf_row_use)"},
        {"reserved", "advantages(): it sets `reserved` of the host's rlhf_advantages to 6; it must "
                     "be 0"},
        {"other_advantage", "advantages(): it replaces the pointer `advantage` of the host's "
                            "rlhf_advantages; a plugin must write into the host's array"},
        {"other_carry", "advantages(): it replaces the pointer `carry_row` of the host's"},
        {"other_tokens", "advantages(): it replaces the pointer `carry_token` of the host's"},
        {"other_slopes", "loss(): it replaces the pointer `d_heads` of the host's rlhf_loss_out"},
        {"change_run", "plan(): it changes byte "},
        {"stop", "minibatch_end(): out->stop is -1; it must be 0 or 1"}};
    static const struct {
        const char *how, *says;
    } plans[] = {{"beta", "careless_algo.so plans divergence_beta 0.5 without RLHF_DIVERGENCE_JS, "
                          "which alone uses it; it must be 0"},
                 {"named", "careless_algo.so plans a model named \"host_draft\"; names that begin "
                           "with \"host_\" are for models of later hosts"},
                 {"no_names", "careless_algo.so plans `named` with n_named 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        assert_int_equal(run(t, cases[i].how), 1);
        snprintf(text, sizeof text, "algorithm careless_algo.so, %s, phase 2: %s%s",
                 cases[i].function, i < 5 ? past : "", cases[i].says);
        e2e_says(t, text);
        assert_true(e2e_exists(t, "r/metrics.jsonl"));
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[256];
        assert_int_equal(run(t, values[i].how), 1);
        snprintf(text, sizeof text, "algorithm careless_algo.so, %s", values[i].says);
        e2e_says(t, text);
    }
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        assert_int_equal(run(t, plans[i].how), 2);
        e2e_says(t, plans[i].says);
    }
    assert_true(run(t, "crash") > 128);
    e2e_says(t, "algorithm careless_algo.so, loss()");
}

// The run goes on without the metric.
static void a_wrong_report_is_left_out(void **state) {
    struct e2e *t = *state;
    assert_int_equal(run(t, "name"), 0);
    e2e_says(t,
             "careless_algo, advantages(): the metric \"my metric\\n\" is left out: its name may "
             "contain only letters from a to z and A to Z");
    assert_int_not_equal(e2e_shell(t, "grep -q 'my metric' r/metrics.jsonl"), 0);
    assert_int_equal(run(t, "thread"), 0);
    e2e_says(t, "careless_algo: the metric \"from_a_thread\" is left out: it was reported from "
                "another thread than the one that called advantages()");
    assert_int_not_equal(e2e_shell(t, "grep -q from_a_thread r/metrics.jsonl"), 0);
    assert_int_equal(run(t, "early"), 0);
    e2e_says(t, "careless_algo, plan(): the metric \"from_plan\" is left out: it was not reported "
                "in a function of a phase");
}

static void numbers_on_prompts_are_ignored(void **state) {
    struct e2e *t = *state;
    static const char *const ways[] = {"prompt_advantage", "prompt_slope"};
    assert_int_equal(run(t, "nothing"), 0);
    e2e_shell(t, "rm -rf usual; mv r usual");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run(t, ways[i]), 0);
        assert_int_equal(e2e_shell(t, "cmp r/checkpoints/latest/model.safetensors "
                                      "usual/checkpoints/latest/model.safetensors"),
                         0);
    }
}

static void a_number_of_loss_that_is_not_finite_is_named(void **state) {
    struct e2e *t = *state;
    assert_int_equal(run(t, "nan_slope"), 0);
    e2e_says(t, "algorithm careless_algo.so, loss(): d_heads->logp of row 0, token ");
    e2e_says(t, ", is nan; all derivatives must be finite");
    assert_int_equal(run(t, "nan_loss"), 0);
    e2e_says(t, "algorithm careless_algo.so, loss(): it gave the loss nan; it must be finite");
}

// This algorithm reports no metrics. All metrics of the run are then the host's, and their names
// are not for algorithms.
static void metrics_of_the_host_are_taken(void **state) {
    struct e2e *t = *state;
    int n = 0;
    assert_int_equal(run(t, "nothing"), 0);
    json_t *rows = e2e_metrics(t, "r"), *row = json_array_get(rows, 2);
    for (void *at = json_object_iter(row); at; at = json_object_iter_next(row, at), n++) {
        char full[RLHF__METRIC_NAME];
        const char *name = json_object_iter_key(at);
        if (!rlhf__metric_name("", name, full)) fail_msg("an algorithm may report %s", name);
    }
    assert_true(n > 20);
    json_decref(rows);
}

static int count(const json_t *rows, int phase, const char *name) {
    return json_object_get(json_array_get(rows, (size_t)phase), name) != NULL;
}

// The row's whole group is left out, and the other rows still train.
static void a_row_that_is_not_finite_is_left_out(void **state) {
    struct e2e *t = *state;
    static const char *const ways[] = {"nan_advantage", "infinite_return"};
    static const char *const values[] = {"advantage nan", "return -inf"};
    for (int k = 0; k < 2; k++) {
        char text[256];
        assert_int_equal(run(t, ways[k]), 0);
        e2e_says(t, "warning: phase 2: 2 rows were left out of the updates so far, because an "
                    "advantage or a return in the group was not finite");
        snprintf(text, sizeof text,
                 "algorithm careless_algo.so, advantages(): it gave row 2 the %s", values[k]);
        e2e_says(t, text);
        json_t *rows = e2e_metrics(t, "r");
        assert_int_equal(count(rows, 0, "optim/not_finite_rows"), 0);
        assert_true(e2e_metric(rows, 1, "optim/not_finite_rows") == 2);
        assert_true(e2e_metric(rows, 1, "optim/skipped_steps") == 0);
        assert_true(e2e_metric(rows, 1, "optim/grad_norm") > 0);
        json_decref(rows);
        assert_int_equal(e2e_shell(t, "\"$HOST\" runs show r"), 0);
        e2e_says(t, "2 rows were left out of the updates so far");
    }
    assert_int_equal(run(t, "all_nan"), 0);
    e2e_says(t, "8 rows were left out of the updates so far");
    json_t *rows = e2e_metrics(t, "r");
    assert_true(e2e_metric(rows, 1, "optim/skipped_steps") == 1);
    json_decref(rows);
}

// A reward in the host's process, and one in a worker.
static void a_reward_that_breaks_a_rule_is_named(void **state) {
    struct e2e *t = *state;
    static const char *const where[] = {"", ",isolate=false"};
    for (int k = 0; k < 2; k++) {
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, WILD, "behind", where[k]), 1);
        e2e_says(t, "reward wild_reward.so, score(), phase 2: ");
        e2e_says(t, "wrote past the end of out->seq");
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, WILD, "thread", where[k]), 0);
        e2e_says(t, "the metric \"from_a_thread\" is left out: it was reported from another thread "
                    "than the one that called score()");
        assert_int_not_equal(e2e_shell(t, "grep -q from_a_thread r/metrics.jsonl"), 0);
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, WILD, "bad_verdict", where[k]), 1);
        e2e_says(t,
                 "reward wild_reward.so, score(), phase 2: out->verdict[0] is 3; it must be from "
                 "0 to 2 (enum rlhf_verdict)");
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, WILD, "bad_failed", where[k]), 1);
        e2e_says(t, "reward wild_reward.so, score(), phase 2: out->failed[0] is 2; it must be 0 or "
                    "1");
        static const struct {
            const char *how, *says;
        } changes[] = {{"change_n", "byte 4 of the host's rlhf_reward_in"},
                       {"change_seq", "byte 8 of the host's rlhf_reward_out"},
                       {"change_reserved", "byte 4 of the host's rlhf_reward_out"}};
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
            char text[256];
            e2e_shell(t, "rm -rf r");
            assert_int_equal(e2e_run(t, WILD, changes[i].how, where[k]), 1);
            snprintf(text, sizeof text, "reward wild_reward.so, score(), phase 2: it changes %s; ",
                     changes[i].says);
            e2e_says(t, text);
        }
        e2e_shell(t, "rm -rf r");
        assert_int_equal(e2e_run(t, WILD, "reduce", where[k]), 1);
        e2e_says(t,
                 "reward wild_reward.so, score(), phase 2: it called reduce(), which is only for "
                 "algorithms; the sums were not changed");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_broken_rule_ends_the_run, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(numbers_on_prompts_are_ignored, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_number_of_loss_that_is_not_finite_is_named, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(metrics_of_the_host_are_taken, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_wrong_report_is_left_out, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_row_that_is_not_finite_is_left_out, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_reward_that_breaks_a_rule_is_named, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
