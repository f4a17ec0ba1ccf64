// test_e2e_pairs.c: preference rows from a model and a judge; labels from a classifier.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PAIRS                                                                                      \
    "pairs --model s/checkpoints/latest --judge period_count.so --prompts prompts.txt "            \
    "--set sampling.max_new_tokens=24 --dtype f32 "

static void make_policy(struct e2e *t) {
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --data texts.jsonl "
                                "--set policy.init=random --set batch.size=16 --set optim.lr=0.01 "
                                "--set run.phases=30 --set run.dir=s --set compute.dtype=f32"),
                     0);
}

static const char *text_of(const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    if (!json_is_string(v)) fail_msg("a row has no text '%s'", key);
    return json_string_value(v);
}

static double score_of(const json_t *row, size_t i) {
    const json_t *v = json_array_get(json_object_get(row, "scores"), i);
    if (!json_is_number(v)) fail_msg("a row has no score %zu", i);
    return json_number_value(v);
}

// Counts periods. A random model writes any byte, so the text may contain NUL.
static double periods(const json_t *text) {
    const char *s = json_string_value(text);
    double n = 0;
    for (size_t i = 0; i < json_string_length(text); i++)
        n += s[i] == '.';
    return n;
}

static double periods_of(const json_t *row, const char *key) {
    return periods(json_object_get(row, key));
}

// The rows contain the texts that the judge scored, in the order of the prompts.
static void best_against_worst(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    assert_int_equal(e2e_run(t, PAIRS "--n 40 --k 3 --min-gap 1 --out a.jsonl"), 0);
    e2e_says(t, "of 40 prompts: a.jsonl");
    json_t *rows = e2e_lines(t, "a.jsonl");
    assert_in_range(json_array_size(rows), 8, 40);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *prompt = text_of(row, "prompt");
        assert_true(strstr("It was|The film|I think|the thing in it", prompt) != NULL);
        assert_true(periods_of(row, "chosen") == score_of(row, 0));
        assert_true(periods_of(row, "rejected") == score_of(row, 1));
        assert_true(score_of(row, 0) >= score_of(row, 1) + 1);
    }
    json_decref(rows);
    // A negative weight reverses the order. In a sum of rewards, each judge has its weight.
    assert_int_equal(e2e_run(t, "pairs --model s/checkpoints/latest --prompts prompts.txt "
                                "--judge period_count.so:weight=-0.5 --judge ngram3.so:weight=0 "
                                "--set sampling.max_new_tokens=24 --n 40 --k 3 --out b.jsonl"),
                     0);
    rows = e2e_lines(t, "b.jsonl");
    const json_t *row = json_array_get(rows, 0);
    assert_true(-0.5 * periods_of(row, "chosen") == score_of(row, 0));
    assert_true(periods_of(row, "chosen") < periods_of(row, "rejected"));
    json_decref(rows);
}

static void best_of_k(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    assert_int_equal(e2e_run(t, PAIRS "--n 160 --k 4 --best-of --out a.jsonl "
                                      "--set sampling.stop_at_eos=false"),
                     0); // an empty response would be left out
    json_t *rows = e2e_lines(t, "a.jsonl");
    assert_in_range(json_array_size(rows), 40, 160);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *responses = json_object_get(row, "responses");
        size_t best = (size_t)json_integer_value(json_object_get(row, "best"));
        assert_int_equal(json_array_size(responses), 4);
        for (size_t k = 0; k < 4; k++) {
            assert_true(periods(json_array_get(responses, k)) == score_of(row, k));
            assert_true(k == best || score_of(row, k) < score_of(row, best));
        }
    }
    json_decref(rows);
}

static double mean_reward(struct e2e *t, const char *eval, const char *more) {
    assert_int_equal(e2e_run(t, "%s%s", eval, more), 0);
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    double reward = json_number_value(json_object_get(v, "reward"));
    json_decref(v);
    return reward;
}

// A random model writes invalid UTF-8, so different tokens can have equal texts. A reward model
// distinguishes such tokens. The written pairs can still be used for training.
static void rows_can_be_trained_on(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "one.jsonl",
              "{\"prompt\": \"It\", \"chosen\": \" is\", \"rejected\": \" was\"}\n");
    const char *train = "--algo bradley_terry.so --policy model --set policy.init=random "
                        "--set score.calibrate=0 --set run.phases=1 --set log.tensorboard=false";
    assert_int_equal(e2e_run(t, "%s --data one.jsonl --set batch.size=1 --set run.dir=r", train),
                     0);
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set "
                                "policy.init=random --set run.phases=1 --set run.dir=s"),
                     0);
    const char *make = "pairs --model s/checkpoints/latest --prompts prompts.txt "
                       "--set sampling.max_new_tokens=1 --n 60 --k 8 "
                       "--judge bt_rm.so:model=r/checkpoints/latest";
    assert_int_equal(e2e_run(t, "%s --out a.jsonl", make), 0);
    assert_int_equal(e2e_shell(t, "grep -c '\xef\xbf\xbd' a.jsonl"), 0); // such texts occur
    assert_int_equal(e2e_run(t, "%s --data a.jsonl --set run.dir=x", train), 0);
    assert_int_equal(e2e_run(t, "%s --best-of --out b.jsonl", make), 0);
    assert_int_equal(e2e_run(t, "%s --data b.jsonl --set run.dir=y", train), 0);
    // Token rewards divide the score of mean pooling among the tokens, so their sum is that score.
    // A judge with token rewards therefore chooses the same pairs as a judge without them.
    assert_int_equal(e2e_run(t, "%s,per_token=true --out c.jsonl", make), 0);
    assert_int_equal(e2e_shell(t, "cmp a.jsonl c.jsonl"), 0);
    const char *eval = "eval --model s/checkpoints/latest --data prompts.txt --n 16 --json "
                       "--set sampling.max_new_tokens=6 "
                       "--reward bt_rm.so:model=r/checkpoints/latest";
    double whole = mean_reward(t, eval, ""), shares = mean_reward(t, eval, ",per_token=true");
    assert_true(whole != 0 && fabs(whole - shares) < 1e-4 * fabs(whole));
}

static void bytes_depend_on_the_seed_alone(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    assert_int_equal(e2e_run(t, PAIRS "--n 300 --out a.jsonl"), 0); // more than one chunk
    assert_int_equal(e2e_run(t, PAIRS "--n 300 --out b.jsonl.gz --threads 2"), 0);
    assert_int_equal(e2e_run(t, PAIRS "--n 270 --out c.jsonl"), 0);
    assert_int_equal(e2e_run(t, PAIRS "--n 300 --out d.jsonl --seed 2"), 0);
    assert_int_equal(e2e_shell(t, "zcat b.jsonl.gz | cmp - a.jsonl"), 0);
    assert_int_equal(e2e_shell(t, "head -n $(wc -l < c.jsonl) a.jsonl | cmp - c.jsonl"), 0);
    assert_int_equal(e2e_shell(t, "cmp -s a.jsonl d.jsonl"), 1);
    // A prompt is used twice, but no sample is.
    assert_int_equal(e2e_shell(t, "test -z \"$(sort a.jsonl | uniq -d)\""), 0);
}

static void refusals(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    e2e_write(t, "a.jsonl", "kept\n");
    assert_int_equal(e2e_run(t, PAIRS "--n 8 --out a.jsonl"), 2);
    e2e_says(t, "'a.jsonl' exists already; --force replaces it");
    assert_int_equal(e2e_shell(t, "grep -q kept a.jsonl"), 0);
    assert_int_equal(e2e_run(t, PAIRS "--n 8 --out a.jsonl --force"), 0);
    assert_int_equal(e2e_shell(t, "grep -q kept a.jsonl"), 1);
    assert_int_equal(e2e_run(t, PAIRS "--n 8 --min-gap 1000 --out b.jsonl"), 2);
    e2e_says(t, "no rows are left from 8 prompts");
    assert_int_equal(e2e_run(t, PAIRS "--n 8 --out b.jsonl --set sampling.max_new_tokens=64"), 2);
    e2e_says(t, "context");
    assert_int_equal(e2e_run(t, PAIRS "--n 8 --out none/b.jsonl"), 1);
    e2e_says(t, "none/b.jsonl");
    assert_int_equal(e2e_shell(t, "ls b.jsonl* 2>/dev/null"), 2); // nothing half written
}

static void stopped_it_says_that_nothing_was_written(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    assert_int_equal(
        e2e_run(t, "pairs --model s/checkpoints/latest --prompts prompts.txt --judge "
                   "\"$RLHF_TEST_PLUGINS/interrupting.so:isolate=false\" --n 1 --out b.jsonl"),
        130);
    e2e_says(t, "stopped; 'b.jsonl' was not written");
    assert_int_equal(e2e_run(t, "pairs --policy s/checkpoints/latest"), 2);
    e2e_says(t, "unknown option \"--policy\"; here it is --model");
    assert_int_equal(e2e_run(t, "--algo sft.so --model model"), 2);
    e2e_says(t, "unknown option \"--model\"; here it is --policy");
}

// ---- label ----

static void labels_of_a_classifier(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo classify.so --policy model --data labeled.jsonl "
                                "--set policy.init=random --set run.phases=60 --set batch.size=32 "
                                "--set optim.lr=0.01 --set run.dir=c"),
                     0);
    const char *label = "label --model c/checkpoints/latest --data labeled.jsonl";
    assert_int_equal(e2e_run(t, "%s --out a.jsonl", label), 0);
    e2e_says(t, "64 of 64 rows labeled: a.jsonl");
    json_t *given = e2e_lines(t, "labeled.jsonl"), *rows = e2e_lines(t, "a.jsonl");
    int right = 0, sure = 0;
    assert_int_equal(json_array_size(rows), 64);
    for (size_t i = 0; i < 64; i++) {
        const json_t *row = json_array_get(rows, i), *want = json_array_get(given, i);
        double p = json_number_value(json_object_get(row, "p"));
        assert_string_equal(text_of(row, "text"), text_of(want, "text"));
        assert_true(p >= 0.5 && p <= 1); // the probability of the more likely of two labels
        right += json_equal(json_object_get(row, "label"), json_object_get(want, "label"));
        sure += p >= 0.9;
    }
    json_decref(given);
    json_decref(rows);
    assert_in_range(right, 60, 64); // the classifier was trained on these rows
    assert_int_equal(e2e_run(t, "%s --min-p 0.9 --out b.jsonl", label), 0);
    char line[64];
    snprintf(line, sizeof line, "%d of 64 rows labeled", sure);
    e2e_says(t, line);
    assert_int_equal(e2e_run(t, "%s --skip 8 --limit 16 --threads 2 --out c.jsonl.gz", label), 0);
    assert_int_equal(
        e2e_shell(t, "zcat c.jsonl.gz > c.jsonl; sed -n 9,24p a.jsonl | cmp - c.jsonl"), 0);
    assert_int_equal(e2e_run(t, "%s --out labeled.jsonl", label),
                     2); // but not longer than its context
    e2e_says(t, "label: --out 'labeled.jsonl' exists already; --force replaces it");
    assert_int_equal(e2e_run(t, "%s --limit 3 --out c.jsonl --force", label), 0);
    assert_int_equal(e2e_run(t, "label --model model --data labeled.jsonl --out d.jsonl"), 2);
    assert_int_equal(e2e_shell(t, "ls d.jsonl* 2>/dev/null"), 2);
}

// The rows mark responses that the length limit cut off, and the command warns of them. Nothing is
// marked if responses need not end.
static void cut_responses_are_marked(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    assert_int_equal(e2e_run(t, PAIRS "--set sampling.max_new_tokens=4 --out a.jsonl"), 0);
    e2e_says(t,
             " responses in the rows were cut off after sampling.max_new_tokens=4 tokens, before");
    json_t *rows = e2e_lines(t, "a.jsonl");
    const json_t *cut = json_object_get(json_array_get(rows, 0), "cut");
    assert_int_equal(json_array_size(cut), 2);
    assert_true(json_is_true(json_array_get(cut, 0)) || json_is_true(json_array_get(cut, 1)));
    json_decref(rows);
    assert_int_equal(e2e_run(t, PAIRS "--best-of --set sampling.max_new_tokens=4 --out b.jsonl"),
                     0);
    rows = e2e_lines(t, "b.jsonl");
    const json_t *row = json_array_get(rows, 0);
    assert_int_equal(json_array_size(json_object_get(row, "cut")),
                     json_array_size(json_object_get(row, "responses")));
    json_decref(rows);
    assert_int_equal(e2e_run(t, PAIRS "--set sampling.max_new_tokens=4 --set "
                                      "sampling.stop_at_eos=false --out c.jsonl"),
                     0);
    assert_null(strstr(t->out, "were cut off"));
    rows = e2e_lines(t, "c.jsonl");
    assert_null(json_object_get(json_array_get(rows, 0), "cut"));
    json_decref(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(best_against_worst, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(best_of_k, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(cut_responses_are_marked, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_can_be_trained_on, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(bytes_depend_on_the_seed_alone, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(refusals, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(stopped_it_says_that_nothing_was_written, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(labels_of_a_classifier, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_pairs", tests, NULL, NULL);
}
