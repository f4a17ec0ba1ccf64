// test_e2e_audit.c: RUN/rollouts.jsonl records every input of a phase's updates exactly once,
// however often the run was stopped.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RUN                                                                                        \
    "--policy model --set policy.init=random --prompts prompts.txt --set batch.size=12 "           \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" --set sampling.max_new_tokens=8 "    \
    "--set optim.schedule_phases=8 --set optim.lr=0.01 --set log.samples=12 "                      \
    "--set log.samples_every=1 --set log.rollouts=true "

static int64_t integer(const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    if (!json_is_integer(v)) fail_msg("%s is no integer", key);
    return json_integer_value(v);
}

static double number(const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    if (!json_is_number(v)) fail_msg("%s is no number", key);
    return json_number_value(v);
}

// Returns the array `key` of a row. It must have one number per response token, and each number
// must be an f32.
static const json_t *tokens(const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    size_t want =
        json_array_size(json_object_get(row, "ids")) - (size_t)integer(row, "prompt_length");
    if (!json_is_array(v) || json_array_size(v) != want)
        fail_msg("%s has %zu numbers, the response %zu tokens", key, json_array_size(v), want);
    for (size_t k = 0; k < want; k++) {
        double x = json_number_value(json_array_get(v, k));
        char text[32];
        // Nine digits suffice for any f32: if the number is read back and printed, the text is the
        // same.
        snprintf(text, sizeof text, "%.9g", (double)(float)x);
        assert_true((float)strtod(text, NULL) == (float)x);
    }
    return v;
}

static double sum(const json_t *array) {
    double s = 0;
    for (size_t k = 0; k < json_array_size(array); k++)
        s += json_number_value(json_array_get(array, k));
    return s;
}

// Returns the sample of a row of a phase.
static const json_t *sample_of(const json_t *samples, int64_t phase, int64_t row) {
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *s = json_array_get(samples, i);
        if (json_integer_value(json_object_get(s, "phase")) == phase &&
            json_integer_value(json_object_get(s, "row")) == row)
            return s;
    }
    fail_msg("row %lld of phase %lld is no sample", (long long)row, (long long)phase);
    return NULL;
}

static int is_row(const json_t *line) { return json_object_get(line, "row") != NULL; }

// The rows of a phase equal its samples, number for number.
static void rows_are_what_was_trained_on(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo ppo.so " RUN "--set run.phases=2 --set run.dir=p "
                                "--set algo.minibatches=3 --set algo.epochs=2"),
                     0);
    json_t *lines = e2e_lines(t, "p/rollouts.jsonl"), *samples = e2e_lines(t, "p/samples.jsonl");
    assert_int_equal(json_array_size(samples), 24);
    assert_int_equal(json_array_size(lines), 2 * (12 + 6));
    for (size_t i = 0; i < 24; i++) {
        const json_t *row = json_array_get(lines, i < 12 ? i : i + 6);
        const json_t *sample = sample_of(samples, i < 12 ? 1 : 2, (int64_t)i % 12);
        assert_true(is_row(row));
        assert_int_equal(integer(row, "phase"), i < 12 ? 1 : 2);
        assert_int_equal(integer(row, "row"), i % 12);
        assert_int_equal(integer(row, "group"), i % 12);
        assert_true(integer(row, "prompt") >= 0 && integer(row, "prompt") < 4);
        assert_true(json_is_boolean(json_object_get(row, "finished")));
        assert_true(fabs(sum(tokens(row, "logp_sampled")) - number(sample, "logp")) < 1e-4);
        assert_true(fabs(sum(tokens(row, "logp_ref")) - number(sample, "ref_logp")) < 1e-4);
        assert_true(json_equal(tokens(row, "logp_old"), tokens(row, "logp_sampled")));
        assert_true(number(row, "score") + sum(tokens(row, "token_reward")) ==
                    number(sample, "reward"));
        tokens(row, "value");
        tokens(row, "advantage");
        tokens(row, "returns");
    }
    json_decref(lines);
    json_decref(samples);
}

// Each epoch's minibatches use every row once.
static void updates_name_their_rows(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo ppo.so " RUN "--set run.phases=1 --set run.dir=p "
                                "--set algo.minibatches=3 --set algo.epochs=2"),
                     0);
    json_t *lines = e2e_lines(t, "p/rollouts.jsonl"), *metrics = e2e_metrics(t, "p");
    double norm = 0;
    for (size_t u = 0; u < 6; u++) {
        const json_t *line = json_array_get(lines, 12 + u);
        assert_int_equal(integer(line, "phase"), 1);
        assert_int_equal(integer(line, "epoch"), u / 3);
        assert_int_equal(integer(line, "minibatch"), u % 3);
        assert_int_equal(json_array_size(json_object_get(line, "rows")), 4);
        assert_true(json_is_false(json_object_get(line, "skipped")));
        number(line, "loss");
        norm += number(line, "grad_norm") / 6;
    }
    for (size_t epoch = 0; epoch < 2; epoch++) {
        int seen[12] = {0};
        for (size_t k = 0; k < 12; k++)
            seen[json_integer_value(json_array_get(
                json_object_get(json_array_get(lines, 12 + 3 * epoch + k / 4), "rows"), k % 4))]++;
        for (size_t i = 0; i < 12; i++)
            assert_int_equal(seen[i], 1);
    }
    assert_true(fabs(norm - e2e_metric(metrics, 0, "optim/grad_norm")) < 1e-6 * norm);
    json_decref(lines);
    json_decref(metrics);
}

// Advantages that are computed per minibatch are stored with the minibatch.
static void advantages_of_a_minibatch(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo ppo.so " RUN "--set run.phases=1 --set run.dir=p "
                                "--set algo.minibatches=2 --set algo.whiten_scope=minibatch "
                                "--set algo.old_logp=recompute"),
                     0);
    json_t *lines = e2e_lines(t, "p/rollouts.jsonl");
    for (size_t i = 0; i < 12; i++) {
        const json_t *row = json_array_get(lines, i);
        assert_true(json_is_null(json_object_get(row, "advantage")));
        assert_true(json_is_null(json_object_get(row, "returns")));
        assert_true(json_equal(tokens(row, "logp_old"), tokens(row, "logp_sampled")));
    }
    const json_t *update = json_array_get(lines, 12);
    const json_t *rows = json_object_get(update, "rows");
    assert_int_equal(json_array_size(json_object_get(update, "advantage")), 6);
    assert_int_equal(json_array_size(json_object_get(update, "returns")), 6);
    for (size_t k = 0; k < 6; k++) {
        const json_t *row =
            json_array_get(lines, (size_t)json_integer_value(json_array_get(rows, k)));
        const json_t *own = json_array_get(json_object_get(update, "advantage"), k);
        assert_int_equal(json_array_size(own), json_array_size(tokens(row, "logp_old")));
    }
    json_decref(lines);
}

static void a_resumed_run_goes_on_with_it(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, "--algo grpo.so:group_size=3 " RUN "--set run.phases=4 --set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, "--algo grpo.so:group_size=3 " RUN
                                "--set run.phases=4 --set run.stop_after=2 --set run.dir=b"),
                     0);
    // Lines that a run wrote after its last checkpoint, before it was killed, are removed and
    // rewritten.
    assert_int_equal(e2e_shell(t,
                               "cp b/rollouts.jsonl two.jsonl; "
                               "sed 's/\"phase\": 2/\"phase\": 3/' two.jsonl | tail -3 "
                               ">>b/rollouts.jsonl; printf '{\"phase\": 3, ' >>b/rollouts.jsonl"),
                     0);
    assert_int_equal(e2e_run(t, "--resume b --set run.stop_after=0"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/rollouts.jsonl b/rollouts.jsonl"), 0);
    json_t *lines = e2e_lines(t, "a/rollouts.jsonl");
    const json_t *row = json_array_get(lines, 5);
    assert_int_equal(integer(row, "group"), 1);
    assert_true(json_is_null(json_object_get(row, "value")));
    json_decref(lines);
}

// A roll-back removes the lines of the phases that it discards, even if the process that rolls back
// does not log rows itself.
static void an_abandoned_future_leaves_no_rows(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo grpo.so:group_size=3 " RUN "--set run.phases=4 "
                                "--set checkpoint.every=1 --set checkpoint.keep=0 "
                                "--set run.dir=a"),
                     0);
    assert_int_equal(e2e_shell(t, "ln -sfn 000002 a/checkpoints/latest"), 0);
    assert_int_equal(e2e_run(t, "--resume a --set run.phases=3 --set log.rollouts=false"), 0);
    assert_int_equal(e2e_run(t, "--resume a --set run.phases=4 --set log.rollouts=true"), 0);
    assert_int_equal(e2e_shell(t, "grep -o '\"phase\": [0-9]*' a/rollouts.jsonl | uniq | "
                                  "tr -dc '0-9' | grep '^124$'"),
                     0);
}

static void rows_that_were_dropped_are_not_there(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo ppo.so " RUN "--set run.phases=1 --set run.dir=p "
                                "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=3\" "
                                "--set rewards.nan_policy=drop"),
                     0);
    json_t *lines = e2e_lines(t, "p/rollouts.jsonl");
    int64_t rows = 0;
    for (size_t i = 0; i < json_array_size(lines); i++)
        if (is_row(json_array_get(lines, i)))
            assert_int_equal(integer(json_array_get(lines, i), "row"), rows++);
    assert_true(rows > 0 && rows < 12);
    json_decref(lines);
}

// The file is off by default, and refused in runs without responses.
static void only_where_there_are_responses(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo ppo.so " RUN "--set run.phases=1 --set run.dir=p "
                                "--set log.rollouts=false"),
                     0);
    assert_false(e2e_exists(t, "p/rollouts.jsonl"));
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --set policy.init=random "
                                "--data texts.jsonl --set log.rollouts=true --set run.dir=s"),
                     2);
    e2e_says(t, "log.rollouts is true, but sft.so trains on rows of a file and has no "
                "responses to write");
    assert_false(e2e_exists(t, "s"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_what_was_trained_on, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(updates_name_their_rows, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(advantages_of_a_minibatch, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_goes_on_with_it, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(an_abandoned_future_leaves_no_rows, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_that_were_dropped_are_not_there, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(only_where_there_are_responses, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_audit", tests, NULL, NULL);
}
