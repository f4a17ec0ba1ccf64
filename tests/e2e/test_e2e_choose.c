// test_e2e_choose.c: algorithms that choose their prompts. Checks which data and rows they get from
// the host, what is refused, and that a killed run resumes to the same bytes.
#include "e2e.h"

#include <rlhf/rng.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROMPTS 10
#define ANY                                                                                        \
    "--policy model --set policy.init=random --prompts rows.jsonl --set log.rollouts=true "        \
    "--set sampling.max_new_tokens=6 --set optim.lr=0.01 --set optim.schedule_phases=40 "          \
    "--set run.seed=7 "
#define PAID       "--reward \"$RLHF_TEST_PLUGINS/parity_reward.so" // options and \" follow
#define CURRICULUM "--algo \"$RLHF_TEST_PLUGINS/curriculum.so\" " PAID "\" --set batch.size=4 " ANY
#define CHOOSING(options)                                                                          \
    "--algo \"$RLHF_TEST_PLUGINS/choosing_algo.so" options "\" --set batch.size=8 " ANY

static int setup(void **state) {
    static const char *const words[PROMPTS] = {"It was", "I think", "So it", "The end",
                                               "A film", "We have", "They",  "All of it",
                                               "Once",   "No one"};
    char text[1024] = "";
    if (e2e_setup(state) != 0) return -1;
    for (int i = 0; i < PROMPTS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "{\"prompt\": \"%s\"}\n",
                 words[i]);
    e2e_write(*state, "rows.jsonl", text);
    return 0;
}

// Returns the prompt and score of each row of a run, in the order in which the rows were drawn.
static json_t *rows_of(struct e2e *t, const char *run) {
    assert_int_equal(e2e_shell(t, "grep '\"row\": ' %s/rollouts.jsonl > rows", run), 0);
    return e2e_lines(t, "rows");
}

static double number(const json_t *rows, size_t i, const char *key) {
    const json_t *v = json_object_get(json_array_get(rows, i), key);
    assert_true(json_is_number(v));
    return json_number_value(v);
}

// ---- curriculum.so ----

// The rule of sdk/examples/curriculum.c.
static int64_t expected(rlhf_rng *rng, double *weights) {
    double total = 0;
    int64_t last = 0;
    for (int i = 0; i < PROMPTS; i++)
        total += weights[i];
    double at = rlhf_rng_next(rng) * total;
    for (int i = 0; i < PROMPTS; i++) {
        if (weights[i] <= 0) continue;
        last = i;
        at -= weights[i];
        if (at < 0) break;
    }
    weights[last] = 0;
    return last;
}

static void fill_weights(const float *last_score, double *weights) {
    double sum = 0, used = 0;
    for (int i = 0; i < PROMPTS; i++)
        if (!isnan(last_score[i])) {
            sum += (double)last_score[i];
            used++;
        }
    for (int i = 0; i < PROMPTS; i++) {
        const double far = isnan(last_score[i]) ? 0 : ((double)last_score[i] - sum / used) / 0.25;
        weights[i] = 0.05 + exp(-far * far);
    }
}

static void chosen_prompts_follow_the_rule(void **state) {
    struct e2e *t = *state;
    float last_score[PROMPTS];
    double weights[PROMPTS];
    rlhf_rng rng = {.seed = 7, .stream = rlhf_rng_stream("org.example.curriculum//prompts")};
    assert_int_equal(e2e_run(t, CURRICULUM "--set run.phases=8 --set run.dir=a"), 0);
    json_t *rows = rows_of(t, "a"), *m = e2e_metrics(t, "a");
    assert_int_equal(json_array_size(rows), 8 * 4);
    for (int i = 0; i < PROMPTS; i++)
        last_score[i] = NAN;
    int scores = 0;
    for (size_t phase = 0; phase < 8; phase++) {
        fill_weights(last_score, weights);
        for (size_t i = 4 * phase; i < 4 * phase + 4; i++)
            assert_int_equal((int64_t)number(rows, i, "prompt"), expected(&rng, weights));
        for (size_t i = 4 * phase; i < 4 * phase + 4; i++) {
            last_score[(int)number(rows, i, "prompt")] = (float)number(rows, i, "score");
            scores |= 1 << (int)(2 * number(rows, i, "score"));
        }
        // As in runs whose algorithm does not choose prompts, the epoch is the number of prompts
        // drawn, divided by the number of all prompts.
        assert_true(fabs(e2e_metric(m, (int)phase, "epoch") - 0.4 * ((double)phase + 1)) < 1e-12);
    }
    assert_true((scores & (scores - 1)) != 0); // they differ, so the rule matters
    json_decref(rows);
    json_decref(m);
}

static void a_killed_run_goes_on_with_the_same_bytes(void **state) {
    struct e2e *t = *state;
    const char *how = CURRICULUM "--set checkpoint.every=1 --set checkpoint.keep=20";
    assert_int_equal(e2e_run(t, "%s --set run.phases=12 --set run.dir=a", how), 0);
    assert_int_equal(e2e_shell(t,
                               "\"$HOST\" %s --set run.phases=12 --set run.dir=b >/dev/null 2>&1 & "
                               "while [ ! -e b/checkpoints/000003 ]; do sleep 0.01; done; "
                               "kill -9 $!; wait $! 2>/dev/null; [ ! -e b/checkpoints/000012 ]",
                               how),
                     0);
    assert_int_equal(e2e_run(t, "--resume b"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/rollouts.jsonl b/rollouts.jsonl"), 0);
    e2e_same_tree(t, "a/checkpoints/000012", "b/checkpoints/000012");
    assert_true(e2e_exists(t, "a/checkpoints/000012/state/prompts.safetensors"));
}

// ---- what the host tells ----

// Returns the mean reward of a prompt in the last phase that used the prompt. Only rows before
// `end` count.
static double told_score(const json_t *rows, size_t end) {
    double sum = 0;
    for (int i = 0; i < PROMPTS; i++) {
        double phase = -1, score = 0, n = 0;
        for (size_t k = end; k-- > 0;) {
            if ((int)number(rows, k, "prompt") != i) continue;
            if (phase >= 0 && number(rows, k, "phase") != phase) break;
            phase = number(rows, k, "phase");
            score += number(rows, k, "score");
            n++;
        }
        if (n > 0) sum += (double)(float)(score / n);
    }
    return sum;
}

static void scores_and_uses_are_told(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, CHOOSING("") PAID "\" --set run.phases=6 --set run.dir=a"), 0);
    json_t *rows = rows_of(t, "a"), *m = e2e_metrics(t, "a");
    for (int p = 0; p < 6; p++) { // prompts p to p + 3
        assert_true(e2e_metric(m, p, "test/calls") == 1);
        assert_true(e2e_metric(m, p, "test/seen") == 4 * p);
        assert_true(e2e_metric(m, p, "test/unseen") == (p ? PROMPTS - p - 3 : PROMPTS));
        assert_true(fabs(e2e_metric(m, p, "test/score") - told_score(rows, (size_t)p * 8)) < 1e-6);
        assert_true(e2e_metric(m, p, "test/other") == 0);
        assert_true(number(rows, (size_t)p * 8 + 7, "prompt") == (p + 3) % PROMPTS);
    }
    json_decref(rows);
    json_decref(m);
}

// The host calls choose_prompts() again for each round of further prompts in a phase. A prompt
// counts as used once per phase.
static void each_round_asks_again(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, CHOOSING(":rounds=9") PAID "\" --set run.phases=3 --set run.dir=a"),
                     0);
    json_t *m = e2e_metrics(t, "a");
    double used = 0, rounds = 0;
    for (int p = 0; p < 3; p++) {
        rounds += e2e_metric(m, p, "sampling/fresh_rounds");
        used += e2e_metric(m, p, "test/chosen");
        assert_true(e2e_metric(m, p, "test/calls") ==
                    1 + e2e_metric(m, p, "sampling/fresh_rounds"));
        assert_true(e2e_metric(m, p, "test/chosen") == e2e_metric(m, p, "sampling/prompts"));
        assert_true(fabs(e2e_metric(m, p, "epoch") - used / PROMPTS) < 1e-12);
    }
    assert_true(rounds > 0);
    json_decref(m);
    // No group has spread, so each of the 3 phases has to draw more prompts than the file holds.
    assert_int_equal(e2e_run(t, CHOOSING(":rounds=3") PAID ":levels=1\" --set run.phases=3 "
                                                           "--set run.dir=b"),
                     0);
    m = e2e_metrics(t, "b");
    // A phase chooses 16 prompts. In the last call of choose_prompts() for the phase, the last 4 of
    // these prompts do not count as used yet.
    for (int p = 0; p < 3; p++)
        assert_true(e2e_metric(m, p, "test/seen") == (p + 1) * PROMPTS);
    json_decref(m);
}

static void wrong_answers_are_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, CHOOSING(":bad=10") PAID "\" --set run.phases=3 --set run.dir=a"),
                     1);
    e2e_says(t, "algo choosing_algo.so, choose_prompts(), phase 2: prompt[3] is "
                "10; the run has 10 prompts, with indices from 0");
    assert_int_equal(e2e_run(t, CHOOSING(":silent=1") PAID "\" --set run.phases=3 --set run.dir=b"),
                     1);
    e2e_says(t, "phase 2: prompt[0] is -1; the run has 10 prompts");
    // The last checkpoint must be that of phase 1, as if the run had ended there.
    assert_int_equal(e2e_run(t, CHOOSING(":bad=10") PAID "\" --set run.phases=1 --set run.dir=c "
                                                         "--set optim.schedule_phases=40"),
                     0);
    assert_int_equal(e2e_shell(t, "cmp a/checkpoints/latest/state/prompts.safetensors "
                                  "c/checkpoints/latest/state/prompts.safetensors"),
                     0);
    assert_int_equal(
        e2e_run(t, CURRICULUM "--set prompts.shuffle=false --set run.phases=1 --set run.dir=d"), 2);
    e2e_says(t, "prompts.shuffle");
    e2e_says(t, "curriculum.so chooses the prompts of each phase");
}

// If a phase fails after its rewards, the checkpoint has the scores from before that phase.
static void the_boundary_is_kept(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, CHOOSING(":fails=1") PAID "\" --set run.phases=3 --set run.dir=a"),
                     1);
    e2e_says(t, "advantages(), phase 2: on purpose");
    assert_int_equal(e2e_run(t, CHOOSING("") PAID "\" --set run.phases=1 --set run.dir=b"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/checkpoints/000001/state/prompts.safetensors "
                                  "b/checkpoints/000001/state/prompts.safetensors"),
                     0);
}

static void other_prompts_are_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_run(t, CURRICULUM "--set run.phases=2 --set run.stop_after=1 --set run.dir=a"), 0);
    assert_int_equal(e2e_shell(t, "echo '{\"prompt\": \"One more\"}' >> rows.jsonl"), 0);
    assert_int_equal(e2e_run(t, "--resume a --set run.stop_after=0 --allow-changed-inputs"), 2);
    e2e_says(t, "a/checkpoints/000001/state/prompts.safetensors: the checkpoint is for 10 prompts, "
                "but the run has 11: curriculum.so chooses by its record of each "
                "prompt");
    assert_int_equal(e2e_shell(t, "sed -i '$d' rows.jsonl && "
                                  "printf 'x' >> a/checkpoints/000001/state/prompts.safetensors"),
                     0);
    assert_int_not_equal(e2e_run(t, "--resume a --set run.stop_after=0"), 0);
    e2e_says(t, "prompts.safetensors");
    // A run whose algorithm lacks choose_prompts() does not write this file.
    assert_int_equal(e2e_run(t, "--algo grpo.so:group_size=2,kl_placement=none,epochs=1 " PAID "\" "
                                "--set batch.size=8 " ANY "--set run.phases=1 --set run.dir=g"),
                     0);
    assert_false(e2e_exists(t, "g/checkpoints/000001/state/prompts.safetensors"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(chosen_prompts_follow_the_rule), T(a_killed_run_goes_on_with_the_same_bytes),
        T(scores_and_uses_are_told),       T(each_round_asks_again),
        T(wrong_answers_are_refused),      T(the_boundary_is_kept),
        T(other_prompts_are_refused)};
    return cmocka_run_group_tests_name("e2e_choose", tests, NULL, NULL);
}
