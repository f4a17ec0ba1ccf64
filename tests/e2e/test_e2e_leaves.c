// test_e2e_leaves.c: what a run leaves for its report: samples.jsonl, spread.jsonl and
// events.jsonl, checked against rollouts.jsonl and metrics.jsonl.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL "--policy model --set policy.init=random --set optim.schedule_phases=8 "
#define PPO                                                                                        \
    "--algo ppo.so " MODEL "--prompts prompts.txt --set batch.size=16 "                            \
    "--set sampling.max_new_tokens=10 --set sampling.stop_at_eos=true --set optim.lr=0.01 "        \
    "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000\" "
#define TWO     PPO "--reward period_count.so:weight=-0.5 "
#define WATCHED "--set log.samples_every=1 --set log.rollouts=true "

enum { ROWS = 16, SHOWN = 5 };

static json_t *lines_of(const struct e2e *t, const char *run, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", run, name);
    return e2e_lines(t, path);
}

static double number(const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    if (!json_is_number(v)) fail_msg("%s is no number", key);
    return json_number_value(v);
}

static int is_null(const json_t *row, const char *key) {
    return json_is_null(json_object_get(row, key));
}

static const char *text(const json_t *row, const char *key) {
    const char *s = json_string_value(json_object_get(row, key));
    if (!s) fail_msg("%s is no text", key);
    return s;
}

static double sum(const json_t *array) {
    double s = 0;
    for (size_t k = 0; k < json_array_size(array); k++)
        s += json_number_value(json_array_get(array, k));
    return s;
}

// Returns row `row` of a phase in rollouts.jsonl.
static const json_t *rollout(const json_t *all, int64_t phase, int64_t row) {
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *r = json_array_get(all, i), *n = json_object_get(r, "row");
        if (n && json_integer_value(n) == row && number(r, "phase") == (double)phase) return r;
    }
    fail_msg("no row %lld in phase %lld", (long long)row, (long long)phase);
    return NULL;
}

static double reward_of(const json_t *rollout) {
    return number(rollout, "score") + sum(json_object_get(rollout, "token_reward"));
}

static double length_of(const json_t *rollout) {
    return (double)json_array_size(json_object_get(rollout, "ids")) -
           number(rollout, "prompt_length");
}

// ---- samples ----

// The sample has the same numbers as the row of the rollouts, to four digits.
static void same_tokens(const json_t *sample, const char *key, const json_t *row, const char *of) {
    const json_t *got = json_object_get(sample, key), *want = json_object_get(row, of);
    assert_int_equal(json_array_size(got), json_array_size(want));
    for (size_t k = 0; k < json_array_size(got); k++) {
        const double x = json_number_value(json_array_get(got, k));
        const double y = json_number_value(json_array_get(want, k));
        if (!(fabs(x - y) <= 6e-4 * fabs(y))) fail_msg("%s: %g instead of %g", key, x, y);
    }
}

static void is_its_row(const json_t *sample, const json_t *row) {
    const json_t *pieces = json_object_get(sample, "pieces"), *piece;
    const json_t *rewards = json_object_get(sample, "rewards");
    char all[512] = "";
    size_t k;
    assert_true(number(sample, "prompt_row") == number(row, "prompt"));
    assert_true(number(sample, "length") == length_of(row));
    same_tokens(sample, "logp_tokens", row, "logp_sampled");
    same_tokens(sample, "ref_logp_tokens", row, "logp_ref");
    same_tokens(sample, "value_tokens", row, "value");
    assert_true(fabs(number(sample, "logp") - sum(json_object_get(row, "logp_sampled"))) < 1e-4);
    assert_int_equal(json_array_size(pieces), (size_t)length_of(row));
    json_array_foreach(pieces, k, piece) strcat(all, json_string_value(piece));
    assert_int_equal(strncmp(all, text(sample, "response"), strlen(text(sample, "response"))), 0);
    assert_true(fabs(number(rewards, "bad_reward") + number(rewards, "period_count") -
                     reward_of(row)) < 1e-3);
    assert_true(fabs(number(sample, "reward") - reward_of(row)) < 1e-6);
}

// Chooses the rows at 5, 25, 50, 75 and 95 % of the sorted rewards. Rows of equal reward keep the
// order of the batch.
static void expected_rows(const json_t *rollouts, int64_t phase, int64_t out[SHOWN]) {
    static const int ranks[SHOWN] = {1, 4, 8, 11, 14}; // of 15 * share
    for (int64_t i = 0; i < ROWS; i++) {
        const double own = reward_of(rollout(rollouts, phase, i));
        int rank = 0;
        for (int64_t k = 0; k < ROWS; k++) {
            const double other = reward_of(rollout(rollouts, phase, k));
            rank += other < own || (other == own && k < i);
        }
        for (int s = 0; s < SHOWN; s++)
            if (ranks[s] == rank) out[s] = i;
    }
}

static void samples_are_rows_of_the_batch(void **state) {
    struct e2e *t = *state;
    int64_t want[SHOWN] = {0};
    assert_int_equal(e2e_run(t, TWO WATCHED "--set run.phases=3 --set run.dir=r"), 0);
    json_t *samples = lines_of(t, "r", "samples.jsonl"), *all = lines_of(t, "r", "rollouts.jsonl");
    assert_int_equal(json_array_size(samples), 3 * SHOWN);
    for (int64_t i = 0; i < 3 * SHOWN; i++) {
        const json_t *sample = json_array_get(samples, (size_t)i);
        const int64_t phase = i / SHOWN + 1, row = (int64_t)number(sample, "row");
        if (i % SHOWN == 0) expected_rows(all, phase, want);
        assert_true(number(sample, "phase") == (double)phase);
        assert_int_equal(row, want[i % SHOWN]);
        is_its_row(sample, rollout(all, phase, row));
        assert_null(json_object_get(sample, "eval"));
        assert_null(json_object_get(sample, "label"));
    }
    json_decref(samples);
    json_decref(all);
}

// A value that the run does not have is null. If one sample is requested, it is the median row of
// the sorted rewards. If two are requested, they are the first and the last row.
static void what_is_not_known_is_null(void **state) {
    struct e2e *t = *state;
    const char *grpo =
        "--algo grpo.so:group_size=4,kl_placement=none " MODEL
        "--prompts prompts.txt --set batch.size=16 --set sampling.max_new_tokens=6 "
        "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:every=1000,weight=2\" --phases 1 ";
    static const double rewards[] = {2, 0, 4}; // twice 1, 0 and 2
    for (int n = 1; n <= 2; n++) {
        assert_int_equal(e2e_run(t, "%s --set log.samples=%d --out r%d", grpo, n, n), 0);
        char run[8];
        snprintf(run, sizeof run, "r%d", n);
        json_t *samples = lines_of(t, run, "samples.jsonl");
        assert_int_equal(json_array_size(samples), n);
        for (int i = 0; i < n; i++) {
            const json_t *sample = json_array_get(samples, (size_t)i);
            assert_true(is_null(sample, "value_tokens"));
            assert_true(number(sample, "reward") == rewards[n - 1 + i]);
            assert_true(number(json_object_get(sample, "rewards"), "bad_reward") ==
                        rewards[n - 1 + i]);
        }
        json_decref(samples);
    }
}

// Held-out samples have the same prompts before the first phase, in every second phase and at the
// end. They do not change the run.
static void held_out_rows_are_the_same_prompts(void **state) {
    struct e2e *t = *state;
    const char *eval = "--set data.eval_path=prompts.txt --set data.eval_every=2 --phases 3 ";
    static const int phases[] = {0, 2, 3}, spaced[] = {0, 2, 3}; // of 4 prompts
    assert_int_equal(e2e_run(t, TWO "%s --set log.samples=3 --out r", eval), 0);
    json_t *all = lines_of(t, "r", "samples.jsonl"), *row;
    size_t i, n = 0;
    double prompt[3] = {0};
    json_array_foreach(all, i, row) {
        if (!json_object_get(row, "eval")) continue;
        assert_true(json_is_true(json_object_get(row, "eval")));
        assert_true(number(row, "phase") == phases[n / 3]);
        if (n < 3) prompt[n] = number(row, "prompt_row");
        assert_true(number(row, "prompt_row") == prompt[n % 3]);
        assert_true(number(row, "prompt_row") == spaced[n % 3]);
        assert_int_equal(json_array_size(json_object_get(row, "pieces")), number(row, "length"));
        assert_true(is_null(row, "value_tokens"));
        const double difference =
            sum(json_object_get(row, "ref_logp_tokens")) - sum(json_object_get(row, "logp_tokens"));
        // The policy begins as the reference.
        assert_true(n < 3 ? difference == 0 : fabs(difference) > 1e-3);
        assert_true(fabs(number(row, "ref_logp") - sum(json_object_get(row, "ref_logp_tokens"))) <
                    0.1);
        n++;
    }
    assert_int_equal(n, 9);
    json_decref(all);
    assert_int_equal(e2e_run(t, TWO "%s --set log.samples=0 --out none", eval), 0);
    e2e_same_tree(t, "r/checkpoints/000003", "none/checkpoints/000003");
    assert_int_equal(e2e_shell(t, "test ! -s none/samples.jsonl"), 0);
}

// ---- rows of a file ----

static void check_data(struct e2e *t, const char *how, size_t n, const char *labels) {
    char got[256] = "";
    if (e2e_run(t, "%s " MODEL "--set batch.size=4 --phases 1 --out d", how) != 0)
        fail_msg("%s: %s", how, t->out);
    json_t *samples = lines_of(t, "d", "samples.jsonl"), *row;
    size_t i;
    if (json_array_size(samples) != n) fail_msg("%s: %zu samples", how, json_array_size(samples));
    json_array_foreach(samples, i, row) {
        char *label = json_dumps(json_object_get(row, "label"), JSON_ENCODE_ANY);
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", label);
        free(label);
        assert_true(number(row, "length") > 0 && number(row, "prompt_row") >= 0);
        assert_true(strlen(text(row, "response")) > 0);
        assert_true(is_null(row, "reward") && is_null(row, "pieces") && is_null(row, "logp"));
    }
    assert_string_equal(got, labels);
    json_t *spread = lines_of(t, "d", "spread.jsonl");
    const json_t *first = json_array_get(spread, 0);
    assert_true(is_null(first, "reward") && is_null(first, "kl") && is_null(first, "advantage"));
    json_t *metrics = e2e_metrics(t, "d");
    assert_true(fabs(number(json_object_get(first, "length"), "m") -
                     e2e_metric(metrics, 0, "val/sequence_lengths")) < 1e-3);
    json_decref(metrics);
    json_decref(spread);
    json_decref(samples);
    assert_int_equal(e2e_shell(t, "rm -r d"), 0);
}

static void rows_of_training_data(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It\", \"chosen\": \" is\", \"rejected\": \" was\"}\n"
              "{\"prompt\": \"We\", \"chosen\": \" are\", \"rejected\": \" were\"}\n"
              "{\"prompt\": \"You\", \"chosen\": \" are it\", \"rejected\": \" were it\"}\n"
              "{\"prompt\": \"They\", \"chosen\": \" go\", \"rejected\": \" went\"}\n");
    e2e_write(t, "judged.jsonl",
              "{\"prompt\": \"It\", \"completion\": \" is\", \"label\": true}\n"
              "{\"prompt\": \"It\", \"completion\": \" was\", \"label\": false}\n");
    const char *rows = "--set data.shuffle=false --data";
    char how[256];
    snprintf(how, sizeof how, "--algo dpo.so %s pairs.jsonl", rows);
    check_data(t, how, 4, "\"chosen\" \"rejected\" \"chosen\" \"rejected\" ");
    snprintf(how, sizeof how, "--algo bradley_terry.so %s pairs.jsonl --set log.samples=3", rows);
    check_data(t, how, 2, "\"chosen\" \"rejected\" ");
    snprintf(how, sizeof how, "--algo kto.so %s judged.jsonl", rows);
    check_data(t, how, 4, "true false true false "); // two passes
    snprintf(how, sizeof how, "--algo sft.so %s texts.jsonl", rows);
    check_data(t, how, 4, "null null null null ");
    snprintf(how, sizeof how, "--algo classify.so %s labeled.jsonl --set log.samples=2", rows);
    check_data(t, how, 2, "\"LABEL_0\" \"LABEL_1\" ");
}

// ---- spread ----

// Returns how often the value occurs, according to the distribution's pairs of value and count.
static double count_of(const json_t *d, double value) {
    const json_t *pairs = json_object_get(d, "n");
    for (size_t k = 0; k < json_array_size(pairs); k++) {
        const json_t *pair = json_array_get(pairs, k);
        if (json_number_value(json_array_get(pair, 0)) == value)
            return json_number_value(json_array_get(pair, 1));
    }
    return 0;
}

static int near(double a, double b) { return fabs(a - b) <= 1e-4 * fabs(b) + 1e-9; }

static void spread_is_of_the_batch(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO WATCHED "--set run.phases=2 --set run.dir=r"), 0);
    json_t *spread = lines_of(t, "r", "spread.jsonl"), *all = lines_of(t, "r", "rollouts.jsonl");
    json_t *metrics = e2e_metrics(t, "r");
    assert_int_equal(json_array_size(spread), 2);
    for (int i = 0; i < 2; i++) {
        const json_t *line = json_array_get(spread, (size_t)i);
        const json_t *reward = json_object_get(line, "reward");
        const json_t *length = json_object_get(line, "length");
        double n[3] = {0}, tokens = 0, advantage = 0;
        assert_true(number(line, "phase") == i + 1);
        for (int64_t k = 0; k < ROWS; k++) {
            const json_t *row = rollout(all, i + 1, k);
            n[(int)reward_of(row)]++;
            tokens += length_of(row);
            advantage += sum(json_object_get(row, "advantage"));
        }
        for (int v = 0; v < 3; v++)
            assert_true(count_of(reward, v) == n[v]);
        assert_true(near(number(reward, "m"), e2e_metric(metrics, i, "objective/scores")));
        assert_true(near(number(length, "m"), tokens / ROWS));
        assert_true(
            near(number(json_object_get(line, "kl"), "m"), e2e_metric(metrics, i, "objective/kl")));
        assert_true(fabs(number(json_object_get(line, "advantage"), "m") - advantage / tokens) <
                    1e-5);
        assert_true(near(e2e_metric(metrics, i, "objective/entropy_per_token"),
                         e2e_metric(metrics, i, "objective/entropy") * ROWS / tokens));
    }
    json_decref(spread);
    json_decref(all);
    json_decref(metrics);
}

// ---- events ----

static const json_t *event(const json_t *all, int i) {
    const size_t n = json_array_size(all);
    return json_array_get(all, i < 0 ? n - (size_t)-i : (size_t)i);
}

static void is_event(const json_t *all, int i, const char *what, double phase) {
    const json_t *e = event(all, i);
    assert_string_equal(text(e, "event"), what);
    assert_true(number(e, "phase") == phase);
    assert_true(number(e, "time") > 1.7e9);
}

static void events_of_a_run(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--set checkpoint.every=2 --phases 3 --set run.stop_after=2 "
                                    "--out r"),
                     0);
    json_t *all = lines_of(t, "r", "events.jsonl");
    is_event(all, 0, "start", 0);
    const json_t *argv = json_object_get(event(all, 0), "argv");
    assert_string_equal(json_string_value(json_array_get(argv, 2)), "ppo.so");
    is_event(all, -2, "checkpoint", 2);
    assert_string_equal(text(event(all, -2), "path"), "checkpoints/000002");
    is_event(all, -1, "end", 2);
    assert_string_equal(text(event(all, -1), "status"), "stopped");
    assert_string_equal(text(event(all, -1), "reason"), "run.stop_after is 2");
    const int before = (int)json_array_size(all);
    json_decref(all);
    assert_int_equal(e2e_run(t, "--resume r"), 0);
    all = lines_of(t, "r", "events.jsonl");
    is_event(all, before, "resume", 2);
    assert_string_equal(text(event(all, before), "checkpoint"), "checkpoints/000002");
    is_event(all, -2, "checkpoint", 3);
    is_event(all, -1, "end", 3);
    assert_string_equal(text(event(all, -1), "status"), "done");
    json_decref(all);
}

// events.jsonl records a warning of the log, and the failure of a run.
static void warnings_and_failures(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo ppo.so " MODEL "--prompts prompts.txt --set batch.size=4 "
                                "--set sampling.max_new_tokens=4 --reward length.so:max_len=1000 "
                                "--set sampling.stop_at_eos=false --phases 2 --out r"),
                     0);
    json_t *all = lines_of(t, "r", "events.jsonl");
    is_event(all, 1, "warning", 1);
    assert_string_equal(text(event(all, 1), "finding"), "constant_reward");
    assert_int_equal(strncmp(text(event(all, 1), "text"), "All responses have the same", 27), 0);
    e2e_says(t, "warning: phase 1: All responses have the same");
    json_decref(all);
    assert_int_equal(e2e_run(t, "--algo ppo.so " MODEL "--prompts prompts.txt --set batch.size=4 "
                                "--set sampling.max_new_tokens=4 --phases 2 --out f "
                                "--reward \"$RLHF_TEST_PLUGINS/bad_reward.so:how=fail\""),
                     1);
    all = lines_of(t, "f", "events.jsonl");
    is_event(all, -1, "end", 0);
    assert_string_equal(text(event(all, -1), "status"), "failed");
    assert_non_null(strstr(text(event(all, -1), "reason"), "no opinion today"));
    json_decref(all);
}

static void ctrl_c_is_an_end(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" --algo sft.so " MODEL "--data texts.jsonl --set batch.size=4 "
                     "--set run.phases=100000 --out r --threads 1 & pid=$!; n=0; "
                     "while [ $n -lt 300 ]; do [ -s r/metrics.jsonl ] && break; sleep 0.1; "
                     "n=$((n+1)); done; kill -INT $pid; wait $pid"),
        130);
    json_t *all = lines_of(t, "r", "events.jsonl");
    assert_string_equal(text(event(all, -1), "event"), "end");
    assert_string_equal(text(event(all, -1), "status"), "stopped");
    assert_string_equal(text(event(all, -1), "reason"), "the user stopped it");
    assert_string_equal(text(event(all, -2), "event"), "checkpoint");
    json_decref(all);
}

// ---- a run that was killed ----

// The run was killed after it had written the phase that follows the checkpoint, and half a line of
// the next phase. After a resume, its files differ from those of an undisturbed run only in times,
// the event "resume", and the "end" of the first process.
static void a_killed_run_leaves_the_same(void **state) {
    struct e2e *t = *state;
    const char *how = "--set log.samples_every=1 --set checkpoint.every=2 --phases 4 "
                      "--set data.eval_path=prompts.txt --set data.eval_every=1";
    assert_int_equal(e2e_run(t, PPO "%s --out a", how), 0);
    assert_int_equal(e2e_run(t, PPO "%s --set run.stop_after=3 --out b", how), 0);
    assert_int_equal(
        e2e_shell(t, "cd b && ln -sfn 000002 checkpoints/latest && rm -r checkpoints/000003 && "
                     "for f in samples spread events; do printf '{\"phase\": 4, \"x' >> $f.jsonl; "
                     "done"),
        0);
    assert_int_equal(e2e_run(t, "--resume b"), 0);
    assert_int_equal(e2e_shell(t, "cmp a/samples.jsonl b/samples.jsonl && "
                                  "cmp a/spread.jsonl b/spread.jsonl"),
                     0);
    assert_int_equal(e2e_shell(t,
                               "for d in a b; do grep -Ev '\"event\": \"(start|resume|end)\"' "
                               "$d/events.jsonl | sed 's/\"time\": [0-9.]*//' > $d.events; done; "
                               "grep -q checkpoint a.events && cmp a.events b.events && "
                               "test $(grep -c resume b/events.jsonl) = 1"),
                     0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(samples_are_rows_of_the_batch),
        T(what_is_not_known_is_null),
        T(held_out_rows_are_the_same_prompts),
        T(rows_of_training_data),
        T(spread_is_of_the_batch),
        T(events_of_a_run),
        T(warnings_and_failures),
        T(ctrl_c_is_an_end),
        T(a_killed_run_leaves_the_same),
    };
    return cmocka_run_group_tests_name("e2e_leaves", tests, NULL, NULL);
}
