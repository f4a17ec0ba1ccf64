// test_lm_judge.c: lm_judge.so with a fake language model: the formula, questions, answer words of
// several tokens, lost criteria, and everything that is refused.
#include "rewards/fixture.h"

#include "plugin/row_service.h"

#include <math.h>

static struct reward r;
static struct rlhf_test_language_model model;
static char file[64];

// The judge's opinion: the response after "<response>" in the question has this mood.
static double mood(const int32_t *before, int32_t n) {
    static const char good[] = "good", bad[] = "bad";
    double m = 0;
    for (int32_t t = 0; t + 4 <= n; t++) {
        int is_good = 1, is_bad = 1;
        for (int32_t k = 0; k < 4; k++)
            is_good &= before[t + k] == good[k];
        for (int32_t k = 0; k < 3; k++)
            is_bad &= before[t + k] == bad[k];
        m += (double)(is_good - is_bad);
    }
    return m;
}

// P("Y") = 0.5 s and P("N") = 0.5 (1 - s), with s = sigmoid(mood); after 'Y' and 'N' the log-prob
// of 'e' and 'o' is ln 0.5, of others ln 0.125.
static float logp(const void *context, const int32_t *before, int32_t n, int32_t id) {
    const double s = 1 / (1 + exp(-mood(before, n)));
    (void)context;
    if (id == 'Y') return (float)log(0.5 * s);
    if (id == 'N') return (float)log(0.5 * (1 - s));
    return (float)log(id == 'e' || id == 'o' ? 0.5 : 0.125);
}

static int fresh(void **state) {
    (void)state;
    memset(&r, 0, sizeof r);
    rlhf_test_language_model_init(&model);
    model.logp = logp;
    r.language_model = &model.table;
    r.rows = rlhf__row_service();
    snprintf(file, sizeof file, "/tmp/rlhf-lm-judge-XXXXXX");
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    return 0;
}

static int clean(void **state) {
    (void)state;
    remove(file);
    return 0;
}

static void put(const char *text) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static const char *with_file(const char *more) {
    static char options[160];
    snprintf(options, sizeof options, "model=some/dir,file=%s%s", file, more);
    return options;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double metric(const char *name) {
    double value = 0;
    if (!rlhf_test_metric(&r.host, name, &value)) fail_msg("no metric %s", name);
    return value;
}

// ---- scores ----

// "Yes" and "yes" differ in their first tokens, and so do "No" and "no". P(yes) and P(no) are
// products of three and two tokens.
static void default_answers(void **state) {
    (void)state;
    reward_open(&r, "lm_judge.so", "model=some/dir,ask=Is it kind?");
    assert_string_equal(model.path, "some/dir");
    const double yes = 0.5 * sigmoid(2) * 0.5 * 0.125, no = 0.5 * sigmoid(-2) * 0.5;
    const double yes_small = 0.125 * 0.5 * 0.125, no_small = 0.125 * 0.5;
    const double all = yes + no + yes_small + no_small;
    assert_float_equal(score_text(&r, "good good"), ((yes + yes_small) / all), 1e-6);
    assert_float_equal(metric("answer_mass"), all, 1e-6);
    assert_float_equal(metric("criterion_ask"), ((yes + yes_small) / all), 1e-6);
    assert_true(rlhf_test_logged(&r.host, "in its chat template"));
    assert_true(rlhf_test_logged(&r.host, "the answer \"Yes\" has 3 tokens"));
    reward_close(&r);
    assert_int_equal(model.open_count, 0);
}

static void criteria_with_weights_values_and_a_gate(void **state) {
    (void)state;
    static struct texts t;
    memset(&t, 0, sizeof t);
    put("{\"answers\": {\"Y\": 1, \"N\": 0}, \"criteria\": ["
        "{\"name\": \"a\", \"ask\": \"First?\", \"weight\": 3, \"gate\": 0.3},"
        "{\"name\": \"b\", \"ask\": \"Second?\", \"answers\": {\"Y\": 0.25, \"N\": 0.75}}]}");
    reward_open(&r, "lm_judge.so", with_file(""));
    texts_add(&t, "p", 1, "good", 4);
    texts_add(&t, "p", 1, "bad bad", 7);
    texts_add(&t, "p", 1, "good", 4); // the same question is asked once
    assert_int_equal(texts_score(&r, &t, 0, 3), RLHF_OK);
    const double a = sigmoid(1), b = 0.25 * a + 0.75 * (1 - a);
    assert_float_equal((double)t.seq[0], ((3 * a + b) / 4), 1e-6);
    assert_float_equal((double)t.seq[1], 0, 0); // sigmoid(-2) is below the gate
    assert_true(memcmp(&t.seq[2], &t.seq[0], sizeof t.seq[0]) == 0);
    assert_int_equal(model.n_rows, 2 * 2 * 2); // questions, criteria, words
    assert_float_equal(metric("asked"), 4, 0);
    // The rows of a call do not affect each other.
    const float first = t.seq[0];
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    assert_true(memcmp(&t.seq[0], &first, sizeof first) == 0);
    reward_close(&r);
}

// ---- questions ----

static const char *wanted;

// P("Y") is high only if the prompt is exactly `wanted`.
static float exactly(const void *context, const int32_t *before, int32_t n, int32_t id) {
    (void)context;
    int same = (size_t)n == strlen(wanted);
    for (int32_t t = 0; same && t < n; t++)
        same = before[t] == (unsigned char)wanted[t];
    return id == 'Y' && same ? -0.1f : -4.0f;
}

#define ANSWERS "\"answers\": {\"Y\": 1, \" N \": 0}"

static void messages_and_template(void **state) {
    (void)state;
    model.logp = exactly;
    put("{" ANSWERS ", \"template\": \"{row.k}: {response}\\n{ask} {a: 1} {answers} {prompt}\","
        " \"criteria\": [{\"name\": \"a\", \"ask\": \"{row.k}? {response}\"}]}");
    reward_open(&r, "lm_judge.so", with_file(""));
    static struct texts t;
    memset(&t, 0, sizeof t);
    texts_add(&t, "pr", 2, "{row.k} \"x\"", 11);
    t.meta[0] = (rlhf_str){"{\"k\": \"v\"}", 10};
    wanted =
        "[{\"role\":\"user\",\"content\":\"v: {row.k} \\\"x\\\"\\nv? {response} {a: 1} Y or N  "
        "pr\"}]";
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    assert_true((double)t.seq[0] > 0.9);
    assert_int_equal(reward_check_row(&r, t.meta[0]), RLHF_OK);
    assert_int_equal(reward_check_row(&r, (rlhf_str){"{\"j\": 1}", 8}), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "criterion \"a\" names {row.k}"));
    reward_close(&r);
}

static void plain_text_without_a_chat_template(void **state) {
    (void)state;
    model.logp = exactly;
    model.templated = 0;
    put("{\"answers\": {\"Y\": 1, \"N\": 0}, \"template\": \"{response}|{ask}|{answers}\","
        " \"criteria\": [{\"name\": \"a\", \"ask\": \"?\"}]}");
    reward_open(&r, "lm_judge.so", with_file(""));
    assert_true(rlhf_test_logged(&r.host, "as plain texts, because it has no chat template"));
    wanted = "x|?|Y or N\nAnswer: "; // the space is the first token of both words
    assert_true(score_text(&r, "x") > 0.9);
    reward_close(&r);
}

// ---- losses and failures ----

static void too_long_is_lost(void **state) {
    (void)state;
    put("{\"answers\": {\"Y\": 1, \"N\": 0}, \"template\": \"{response}{ask}\", \"criteria\": ["
        "{\"name\": \"a\", \"ask\": \"?\"}, {\"name\": \"b\", \"ask\": \"A long question, is "
        "it so long?\"}]}");
    reward_open(&r, "lm_judge.so", with_file(",longest=64"));
    assert_int_equal(model.longest, 64);
    assert_float_equal(score_text(&r, "good"), sigmoid(1), 1e-6); // criterion b is lost
    assert_true(rlhf_test_logged(&r.host, "criterion b: 1 question is lost: the question has 65"));
    static struct texts t;
    memset(&t, 0, sizeof t);
    texts_add(&t, "p", 1, "good good good good good good good good good", 44);
    texts_add(&t, "p", 1, "bad", 3);
    assert_int_equal(texts_score(&r, &t, 0, 2), RLHF_OK);
    assert_int_equal(t.failed[0], 1);
    assert_int_equal(t.failed[1], 0);
    assert_float_equal((double)t.seq[1], sigmoid(-1), 1e-6);
    reward_close(&r);
}

static float unlikely(const void *context, const int32_t *before, int32_t n, int32_t id) {
    return logp(context, before, n, id) - 5;
}

static void improbable_words_are_said_once(void **state) {
    (void)state;
    model.logp = unlikely;
    put("{\"answers\": {\"Y\": 1, \"N\": 0}, \"criteria\": [{\"name\": \"a\", \"ask\": \"?\"}]}");
    reward_open(&r, "lm_judge.so", with_file(""));
    assert_float_equal(score_text(&r, "good"), sigmoid(1), 1e-6);
    assert_true(rlhf_test_logged(&r.host, "the judge would answer with other words"));
    const uint32_t logs = r.host.n_logs;
    score_text(&r, "bad");
    assert_int_equal(r.host.n_logs, logs);
    reward_close(&r);
}

static void failures_of_the_model(void **state) {
    (void)state;
    static struct texts t;
    memset(&t, 0, sizeof t);
    texts_add(&t, "p", 1, "x", 1);
    reward_open(&r, "lm_judge.so", "model=some/dir,ask=Is it kind?");
    model.score_status = RLHF_E_DEVICE;
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_E_DEVICE);
    reward_close(&r);
    model.open_status = RLHF_E_INVALID;
    assert_int_equal(reward_try(&r, "lm_judge.so", "model=no/dir,ask=Is it?"), RLHF_E_INVALID);
    assert_int_equal(r.host.live, 0);
    r.language_model = NULL;
    assert_int_equal(reward_try(&r, "lm_judge.so", "model=no/dir,ask=Is it?"), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(r.host.fail_text, RLHF_SVC_LANGUAGE_MODEL));
}

static void refused(void **state) {
    (void)state;
#define ONE "\"criteria\": [{\"name\": \"a\", \"ask\": \"?\"}]"
    static const struct {
        const char *text, *why;
    } all[] = {
        {"{\"answers\": {\"Y\": 1}, " ONE "}", "not an object of 2 to 64 words"},
        {"{\"answers\": {\"Y\": 1, \"N\": 2}, " ONE "}",
         "the value of \"N\" is not a number from 0"},
        {"{\"answers\": {\"1\": 0, \"10\": 1}, " ONE "}",
         "the tokens of the answer \"1\" begin those of \"10\""},
        {"{\"scale\": 10, " ONE "}",
         "it has \"scale\"; allowed: \"criteria\", \"answers\", \"template\""},
        {"{\"template\": 3, " ONE "}", "\"template\" is not a text"},
        {"{\"template\": \"{ask}\", " ONE "}", "the template has no {response}"},
        {"{\"template\": \"{ask} {response} {promt}\", " ONE "}",
         "the template has {promt}; allowed: {prompt}, {response}, {ask}, {answers}, {row.KEY}"},
        {"{\"template\": \"{ask} {response} {scale}\", " ONE "}", "the template has {scale}"},
        {"{\"criteria\": [{\"name\": \"a\", \"ask\": \"?\", \"answers\": 1}]}",
         "\"answers\" of a is not an object"},
        {"{\"criteria\": [{\"name\": \"a\", \"ask\": \"?\", \"wait\": 2}]}",
         "allowed: name, ask, weight, gate, answers"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put(all[i].text);
        assert_int_equal(reward_try(&r, "lm_judge.so", with_file("")), RLHF_E_INVALID);
        if (!strstr(r.host.fail_text, all[i].why))
            fail_msg("\"%s\" is not in \"%s\"", all[i].why, r.host.fail_text);
        assert_int_equal(r.host.live, 0);
        assert_int_equal(model.open_count, 0);
    }
    assert_int_equal(reward_try(&r, "lm_judge.so", "model=d"), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "give ask=, a question, or file="));
    assert_int_equal(reward_try(&r, "lm_judge.so", with_file(",ask=Is it?")), RLHF_E_INVALID);
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, fresh, clean)
    const struct CMUnitTest tests[] = {
        TEST(default_answers),       TEST(criteria_with_weights_values_and_a_gate),
        TEST(messages_and_template), TEST(plain_text_without_a_chat_template),
        TEST(too_long_is_lost),      TEST(improbable_words_are_said_once),
        TEST(failures_of_the_model), TEST(refused),
    };
    return cmocka_run_group_tests_name("lm_judge", tests, NULL, NULL);
}
