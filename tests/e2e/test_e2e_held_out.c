// test_e2e_held_out.c: a run samples responses to held-out prompts. It measures these responses as
// `eval` does, and they have no effect on training.
#include "e2e.h"

#include <string.h>

#define GOLD "\"$RLHF_TEST_PLUGINS/gold_reward.so\""
#define RUN                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random "                                       \
    "--set batch.size=8 --set sampling.max_new_tokens=12 --set log.progress=off "                  \
    "--set log.csv=true --set optim.lr=0.01 --set optim.schedule_phases=4 "
#define PERIODS  "--prompts prompts.txt --reward period_count.so:weight=2 --set run.phases=4 "
#define HELD_OUT "--set data.eval_path=held.jsonl --set data.eval_every=2 "

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    e2e_write(*state, "held.jsonl",
              "{\"prompt\": \"The end\"}\n{\"prompt\": \"A longer one of it\"}\n"
              "{\"prompt\": \"was\"}\n");
    return 0;
}

static int has(const json_t *rows, int i, const char *name) {
    return json_object_get(json_array_get(rows, (size_t)i), name) != NULL;
}

static void when_it_is_measured(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT "--set run.dir=a"), 0);
    e2e_says(t, "held-out reward ");
    e2e_says(t, " (3 responses) before the first phase");
    e2e_says(t, " (3 responses) after 2 phases");
    e2e_says(t, " (3 responses) after 4 phases");
    e2e_says(t, "held out: reward "); // in the summary, beside the reward in training
    json_t *rows = e2e_metrics(t, "a");
    assert_int_equal(json_array_size(rows), 5); // the start is row 0
    for (int i = 0; i < 5; i++) {
        assert_true(e2e_metric(rows, i, "phase") == i);
        assert_int_equal(has(rows, i, "eval/reward"), i % 2 == 0);
        assert_int_equal(has(rows, i, "objective/scores"), i > 0);
        if (i % 2) continue;
        assert_true(e2e_metric(rows, i, "eval/reward") ==
                    2 * e2e_metric(rows, i, "eval/rewards/period_count/mean"));
        assert_true(e2e_metric(rows, i, "eval/rewards/not_finite") == 0);
    }
    json_decref(rows);
}

// `eval` with the run's settings and seed samples the same responses.
static void as_eval_measures(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT "--seed 5 --set run.dir=a"), 0);
    json_t *rows = e2e_metrics(t, "a");
    double in_the_run = e2e_metric(rows, -1, "eval/reward");
    json_decref(rows);
    assert_int_equal(e2e_shell(t, "cp -rL a/checkpoints/latest m"), 0);
    assert_int_equal(e2e_run(t, "eval --model m --data held.jsonl --n 3 --seed 5 --json "
                                "--config a/config.json --reward period_count.so:weight=2"),
                     0);
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    assert_true(json_number_value(json_object_get(v, "reward")) == in_the_run);
    json_decref(v);
}

static double measured(struct e2e *t, const char *args) {
    assert_int_equal(e2e_run(t, args), 0);
    const char *json = strchr(t->out, '{'); // after the messages on stderr
    assert_non_null(json);
    json_t *v = json_loads(json, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(v);
    const double reward = json_number_value(json_object_get(v, "reward"));
    json_decref(v);
    return reward;
}

// `eval` measures a run and its checkpoints with the run's settings, unless the user gives others.
// But it does not choose prompts as the run did.
static void with_the_settings_of_the_run(void **state) {
#define EVAL "--data held.jsonl --n 3 --seed 5 --json --reward period_count.so:weight=2"
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT
                             "--seed 5 --set run.dir=a --set sampling.temperature=0.7 "
                             "--set response.non_stop=subtract "
                             "--set response.non_stop_penalty=0.5 --set prompts.limit=1"),
                     0);
    json_t *rows = e2e_metrics(t, "a");
    const double in_the_run = e2e_metric(rows, -1, "eval/reward");
    json_decref(rows);
    assert_true(measured(t, "eval --model a/checkpoints/latest " EVAL) == in_the_run);
    e2e_says(t, "eval: sampling, prompts and response settings as in the run (");
    assert_true(measured(t, "eval --model a " EVAL) == in_the_run);
    assert_true(measured(t, "eval --model a --set response.non_stop=none " EVAL) != in_the_run);
    e2e_write(t, "c.json", "{\"algo\": {\"plugin\": \"ppo.so\"}}");
    assert_true(measured(t, "eval --model a --config c.json " EVAL) != in_the_run);
    assert_null(strstr(t->out, "as in the run"));
    assert_int_equal(e2e_shell(t, "cp -rL a/checkpoints/latest m"), 0);
    assert_true(measured(t, "eval --model m " EVAL) != in_the_run); // m is not part of a run
    assert_true(measured(t, "eval --model m --config a/config.json " EVAL) == in_the_run);
}

// The measured reward is the raw one. A run normalizes and clips rewards only for learning.
static void neither_normalized_nor_clipped(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "held.jsonl",
              "{\"prompt\": \"A\", \"answer\": \"yes\", \"extra\": {\"points\": 3}}\n"
              "{\"prompt\": \"B\", \"answer\": \"yes\", \"extra\": {\"points\": 8}}\n");
    assert_int_equal(e2e_shell(t, "cp held.jsonl prompts.jsonl"), 0);
    assert_int_equal(e2e_run(t, RUN HELD_OUT "--prompts prompts.jsonl --reward " GOLD
                                             " --set run.phases=1 --set rewards.normalize=after "
                                             "--set rewards.clip=0.5 --set run.dir=a"),
                     0);
    json_t *rows = e2e_metrics(t, "a");
    assert_true(e2e_metric(rows, 0, "eval/reward") == 5.5);
    assert_true(e2e_metric(rows, 1, "eval/reward") == 5.5);
    // The plugin's metrics of held-out rows are separate from those of the phase's rows.
    assert_true(e2e_metric(rows, 0, "eval/rewards/gold_reward/right") == 2);
    assert_int_equal(has(rows, 0, "rewards/gold_reward/right"), 0);
    assert_true(e2e_metric(rows, 1, "eval/rewards/gold_reward/right") == 2);
    assert_true(e2e_metric(rows, 1, "rewards/gold_reward/right") == 8);
    json_decref(rows);
}

// Responses to which no reward applies are left out of the mean, as in `eval`.
static void without_a_reward(void **state) {
    struct e2e *t = *state;
#define BY_PYTHON "--prompts prompts.jsonl --reward python.so:file=f.py,function=f "
#define AS_ZERO   "--set rewards.nan_policy=zero "
    e2e_write(t, "f.py",
              "def f(prompts, completions, **row):\n"
              "    return [None if p.startswith('B') else 2 for p in prompts]\n");
    e2e_write(t, "prompts.jsonl", "{\"prompt\": \"A\"}\n");
    e2e_write(t, "held.jsonl", "{\"prompt\": \"A\"}\n{\"prompt\": \"B\"}\n{\"prompt\": \"B b\"}\n");
    assert_int_equal(
        e2e_run(t, RUN HELD_OUT BY_PYTHON AS_ZERO "--set run.phases=2 --set run.dir=a"), 0);
    e2e_says(t, "held-out reward 2.0000 (1 response, 2 without a reward left out) after 2 phases");
    json_t *rows = e2e_metrics(t, "a");
    assert_true(e2e_metric(rows, -1, "eval/reward") == 2);
    json_decref(rows);
    assert_true(measured(t, "eval --model a/checkpoints/latest --data held.jsonl --n 3 --seed 5 "
                            "--json --reward python.so:file=f.py,function=f " AS_ZERO) == 2);
    e2e_write(t, "held.jsonl", "{\"prompt\": \"B\"}\n");
    assert_int_equal(e2e_run(t, RUN HELD_OUT BY_PYTHON AS_ZERO
                             "--set run.phases=2 --set run.dir=b --set checkpoint.every=1 "
                             "--set checkpoint.best=eval/reward"),
                     0);
    e2e_says(t, "no held-out response has a reward after 2 phases, so eval/reward is missing");
    rows = e2e_metrics(t, "b");
    assert_false(has(rows, -1, "eval/reward") || has(rows, 0, "eval/reward"));
    json_decref(rows);
}

static void nothing_is_learned_of_it(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT "--set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, RUN PERIODS "--set run.dir=b"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/checkpoints/latest/model.safetensors "
                                  "b/checkpoints/latest/model.safetensors"),
                     0);
}

static void resuming_does_not_begin_anew(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT "--set run.dir=a"), 0);
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT "--set run.dir=b --set run.stop_after=3"), 0);
    assert_int_equal(e2e_run(t, "--resume b"), 0);
    json_t *a = e2e_metrics(t, "a"), *b = e2e_metrics(t, "b");
    assert_int_equal(json_array_size(b), 5);
    assert_true(e2e_metric(a, 4, "eval/reward") == e2e_metric(b, 4, "eval/reward"));
    assert_true(e2e_metric(a, 0, "eval/reward") == e2e_metric(b, 0, "eval/reward"));
    json_decref(a);
    json_decref(b);
    assert_int_equal(e2e_shell(t, "cmp a/checkpoints/latest/model.safetensors "
                                  "b/checkpoints/latest/model.safetensors"),
                     0);
    e2e_write(t, "held.jsonl", "{\"prompt\": \"Others\"}\n");
    assert_int_equal(e2e_run(t, "--resume b --set run.phases=6"), 2);
    e2e_says(t, "data.eval_path");
}

static void the_best_by_it(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT
                             "--set checkpoint.every=2 --set checkpoint.best=eval/reward "
                             "--set run.dir=a"),
                     0);
    assert_int_equal(e2e_shell(t, "test -L a/checkpoints/best"), 0);
}

static void refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN PERIODS "--set data.eval_path=nowhere.jsonl --set run.dir=a"),
                     2);
    e2e_says(t, "data.eval_path: cannot open nowhere.jsonl");
    assert_int_equal(e2e_run(t, RUN PERIODS "--set data.eval_every=2 --set run.dir=a"), 2);
    e2e_says(t, "data.eval_every has no effect here: data.eval_path is not given");
    e2e_write(t, "held.jsonl", "{\"prompt\": \"A\", \"answer\": \"1\"}\n{\"prompt\": \"B\"}\n");
    e2e_write(t, "rows.jsonl", "{\"prompt\": \"A\", \"answer\": \"1\"}\n");
    assert_int_equal(e2e_run(t, RUN HELD_OUT "--prompts rows.jsonl --reward answer.so "
                                             "--set run.phases=1 --set run.dir=a"),
                     2);
    e2e_says(t, "held.jsonl:2");
    e2e_write(t, "held.jsonl", "{\"question\": \"?\"}\n");
    assert_int_equal(e2e_run(t, RUN PERIODS HELD_OUT "--set run.dir=a"), 2);
    e2e_says(t, "held.jsonl");
    assert_int_equal(e2e_exists(t, "a"), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(when_it_is_measured),
        T(as_eval_measures),
        T(with_the_settings_of_the_run),
        T(neither_normalized_nor_clipped),
        T(without_a_reward),
        T(nothing_is_learned_of_it),
        T(resuming_does_not_begin_anew),
        T(the_best_by_it),
        T(refused),
    };
    return cmocka_run_group_tests_name("e2e_held_out", tests, NULL, NULL);
}
