// test_series.c: checks which values in metrics.jsonl become series, and which settings become
// facts, and how series are drawn.
#include "support/check.h"

#include "history/run_lines.h"
#include "verdict/run_facts.h"
#include "verdict/series.h"

#include <math.h>
#include <stdlib.h>

static void row(struct rlhf__series_set *s, const char *text) {
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    assert_int_equal(rlhf__series_set_row(s, v, rlhf__run_row_phase(v), NULL), RLHF_OK);
    json_decref(v);
}

static void has(const struct rlhf__series_set *s, const char *name, int64_t n, int64_t phase,
                double value) {
    const struct rlhf__series *one = rlhf__series_of(s, name);
    if (one->n != n) fail_msg("%s has %d values", name, (int)one->n);
    if (n == 0) return;
    assert_int_equal(one->phase[n - 1], phase);
    if (one->value[n - 1] != value) fail_msg("%s ends at %g", name, one->value[n - 1]);
}

static void values_of_lines(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    row(&s, "{\"phase\": 0, \"eval/reward\": 0.5}");
    row(&s, "{\"phase\": 1, \"objective/scores\": 2, \"judge/mean\": null, \"lr\": 1e-3, "
            "\"objective/kl\": \"x\"}");
    row(&s, "{\"phase\": 2, \"objective/scores\": 2.5, \"judge/mean\": 0.25}");
    row(&s, "{\"phase\": 2, \"objective/scores\": 9}"); // this phase already has a row
    row(&s, "{\"phase\": 1, \"objective/scores\": 9}");
    row(&s, "{\"objective/scores\": 9}");
    row(&s, "[9]");
    has(&s, "eval/reward", 1, 0, 0.5);
    has(&s, "objective/scores", 2, 2, 2.5);
    has(&s, "judge/mean", 1, 2, 0.25);
    has(&s, "lr", 0, 0, 0); // no rule reads it
    has(&s, "objective/kl", 0, 0, 0);
    assert_int_equal(rlhf__series_set_put(&s, "objective/kl", 3, INFINITY, NULL), RLHF_OK);
    has(&s, "objective/kl", 0, 0, 0);
    for (int64_t i = 3; i < 100; i++)
        assert_int_equal(rlhf__series_set_put(&s, "judge/mean", i, (double)i, NULL), RLHF_OK);
    has(&s, "judge/mean", 98, 99, 99);
    rlhf__series_set_finish(&s);
}

// Before the first step, policy and reference are equal, so all preferences are ties. Ties count as
// wrong.
static void accuracies_begin_with_chance(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    const struct rlhf__series *a;
    row(&s, "{\"phase\": 0, \"eval/accuracy\": 0, \"eval/margin\": 0}");
    row(&s, "{\"phase\": 1, \"dpo/accuracy\": 0, \"dpo/margin\": 0}");
    has(&s, "dpo/accuracy", 0, 0, 0);
    assert_false(rlhf__series_begins_with_chance(&s, "dpo/accuracy"));
    row(&s, "{\"phase\": 2, \"dpo/accuracy\": 0.75, \"dpo/margin\": 0.1}");
    row(&s, "{\"phase\": 3, \"dpo/accuracy\": 0.8, \"dpo/margin\": 0.2, \"eval/accuracy\": 0.25, "
            "\"eval/margin\": 0.1}");
    has(&s, "dpo/accuracy", 3, 3, 0.8);
    a = rlhf__series_of(&s, "dpo/accuracy");
    assert_true(a->phase[0] == 1 && a->value[0] == 0.5 && a->phase[1] == 2 && a->value[1] == 0.75);
    assert_true(rlhf__series_begins_with_chance(&s, "dpo/accuracy"));
    a = rlhf__series_of(&s, "eval/accuracy"); // four responses per row: chance is lower
    assert_true(a->n == 2 && a->phase[0] == 0 && a->value[0] == 0.25 && a->value[1] == 0.25);
    assert_true(rlhf__series_begins_with_chance(&s, "eval/accuracy"));
    rlhf__series_set_finish(&s);
    // Here the policy differs from its reference, and all its preferences are wrong.
    row(&s, "{\"phase\": 1, \"dpo/accuracy\": 0, \"dpo/margin\": -0.5}");
    row(&s, "{\"phase\": 2, \"dpo/accuracy\": 0.5, \"dpo/margin\": 0.1}");
    has(&s, "dpo/accuracy", 2, 2, 0.5);
    assert_true(rlhf__series_of(&s, "dpo/accuracy")->value[0] == 0);
    assert_false(rlhf__series_begins_with_chance(&s, "dpo/accuracy"));
    assert_false(rlhf__series_begins_with_chance(&s, "objective/scores"));
    rlhf__series_set_finish(&s);
}

static void names_that_are_read(void **state) {
    (void)state;
    assert_true(rlhf__series_is_read("objective/scores"));
    assert_true(rlhf__series_is_read("rewards/a/b/mean"));
    assert_true(rlhf__series_is_read("rewards/x/std"));
    assert_true(rlhf__series_is_read("rewards/x/failures"));
    assert_true(rlhf__series_is_read("rewards/not_finite"));
    assert_false(rlhf__series_is_read("rewards/x/time"));
    assert_false(rlhf__series_is_read("rewards//mean"));
    assert_false(rlhf__series_is_read("rewards/mean"));
    assert_false(rlhf__series_is_read("phase"));
}

static struct rlhf__run_facts facts_of(json_t **v, const char *text) {
    struct rlhf__run_facts f;
    json_decref(*v);
    *v = json_loads(text, 0, NULL);
    assert_non_null(*v);
    rlhf__run_facts_read(*v, &f);
    return f;
}

static void facts_of_a_config(void **state) {
    (void)state;
    json_t *v = NULL;
    struct rlhf__run_facts f = facts_of(
        &v,
        "{\"run\": {\"phases\": 30}, \"algo\": {\"kl_controller\": \"fixed\", \"kl_target\": 6},"
        " \"early_stop\": {\"kl\": 9}, \"sampling\": {\"max_new_tokens\": 48, \"stop_at_eos\": "
        "\"auto\", \"stop\": []}, \"optim\": {\"max_grad_norm\": 1.5}, \"reward\": [{\"name\": "
        "\"a\", \"weight\": -0.5, \"plugin\": \"/x/length.so\"}, {\"name\": \"b\"}]}");
    assert_true(f.phases == 30 && f.max_new_tokens == 48 && f.max_grad_norm == 1.5);
    assert_true(f.kl_limit == 9 && f.may_end == 0 && f.pays_length && f.n_rewards == 2);
    assert_string_equal(f.kl_setting, "early_stop.kl");
    assert_string_equal(f.reward[0].name, "a");
    assert_true(f.reward[0].weight == -0.5 && f.reward[1].weight == 1);
    f = facts_of(&v, "{\"algo\": {\"kl_controller\": \"adaptive\", \"kl_target\": 6}, "
                     "\"sampling\": {\"stop_at_eos\": true}}");
    assert_true(f.kl_limit == 6 && f.may_end == 1 && !f.holds);
    assert_string_equal(f.kl_setting, "algo.kl_target");
    f = facts_of(&v, "{\"sampling\": {\"stop_at_eos\": \"false\"}}");
    assert_int_equal(f.may_end, -1);
    f = facts_of(&v, "{\"sampling\": {\"stop_at_eos\": false, \"stop\": [7]}}");
    assert_int_equal(f.may_end, 1);
    // A run from a stranger may have values of other types.
    f = facts_of(&v, "{\"run\": [], \"algo\": 3, \"reward\": {\"name\": 1}, \"sampling\": "
                     "{\"max_new_tokens\": \"x\", \"stop\": 4}, \"optim\": {\"max_grad_norm\": "
                     "null}}");
    assert_true(f.phases == 0 && f.n_rewards == 0 && f.max_new_tokens == 0 && f.kl_limit == 0);
    json_decref(v);
    rlhf__run_facts_read(NULL, &f);
    assert_true(f.phases == 0 && f.n_rewards == 0);
}

static void draws(const double *v, int64_t n, int columns, const char *want) {
    struct rlhf__series_set s = {0};
    struct rlhf__buf out = RLHF__BUF_INIT;
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(rlhf__series_set_put(&s, "x", i + 1, v[i], NULL), RLHF_OK);
    rlhf__put_sparkline(&out, rlhf__series_of(&s, "x"), columns);
    assert_string_equal(rlhf__buf_text(&out), want);
    rlhf__buf_finish(&out);
    rlhf__series_set_finish(&s);
}

static void curves(void **state) {
    (void)state;
    draws((const double[]){0, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 24, "▁▂▃▄▅▆▇██");
    draws((const double[]){3, -1, 1}, 3, 24, "█▁▅");
    draws((const double[]){0, 2, 4, 6, 8, 10}, 6, 3, "▁▅█"); // means of two: 1, 5, 9
    draws((const double[]){0, 0, 9, 9, 9}, 5, 2, "▁█");      // means of two and of three values
    draws((const double[]){7, 7, 7}, 3, 24, "▅▅▅");
    draws((const double[]){7}, 1, 24, "");
    draws(NULL, 0, 24, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_lines),
        cmocka_unit_test(accuracies_begin_with_chance),
        cmocka_unit_test(names_that_are_read),
        cmocka_unit_test(facts_of_a_config),
        cmocka_unit_test(curves),
    };
    return cmocka_run_group_tests_name("history_series", tests, NULL, NULL);
}
