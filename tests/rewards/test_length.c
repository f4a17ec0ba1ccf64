// test_length.c: length.so: the three shapes, their limits, and required options.
#include "rewards/rows.h"

#include <math.h>

static struct reward r;

static int open_rows(void **state) {
    (void)state;
    r.rows = rlhf__row_service();
    return r.rows ? 0 : -1;
}

static int close_rows(void **state) {
    (void)state;
    return 0;
}

// Returns the reward of a response of n tokens. In the fixture, ids are bytes.
static double paid(int n) {
    static char text[1024];
    assert_true(n < (int)sizeof text);
    memset(text, 'x', (size_t)n);
    text[n] = 0;
    return score_row(&r, row_of("x"), text);
}

// Yu et al. 2025, eq. 13, with L_max 100 and L_cache 20.
static void overlong(void **state) {
    (void)state;
    static const double want[][2] = {{0, 0},      {80, 0},   {81, -0.05}, {90, -0.5},
                                     {99, -0.95}, {100, -1}, {101, -1},   {500, -1}};
    reward_open(&r, "length.so", "max_len=100,cache=20");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_true(paid((int)want[i][0]) == (double)(float)want[i][1]);
    reward_close(&r);
    reward_open(&r, "length.so", "max_len=100");
    assert_true(paid(100) == 0);
    assert_true(paid(101) == -1);
    reward_close(&r);
}

static void band(void **state) {
    (void)state;
    static const double want[][2] = {{0, 0},  {6, 0},     {7, 0.25},  {9, 0.75}, {10, 1},
                                     {20, 1}, {21, 0.75}, {23, 0.25}, {24, 0},   {90, 0}};
    reward_open(&r, "length.so", "shape=band,min_len=10,max_len=20,margin=4");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_true(paid((int)want[i][0]) == (double)(float)want[i][1]);
    reward_close(&r);
    reward_open(&r, "length.so", "shape=band,min_len=10,max_len=20");
    assert_true(paid(9) == 0 && paid(10) == 1 && paid(20) == 1 && paid(21) == 0);
    reward_close(&r);
}

// "#### 5" is 6 bytes; leading blanks make it longer.
static double cosine_of(const char *answer, int n) {
    static char text[1024];
    memset(text, ' ', (size_t)n);
    memcpy(text + n - 6, "#### 5", 7);
    return score_row(&r, row_of(answer), text);
}

// Yeo et al. 2025, C.1.
static void cosine(void **state) {
    (void)state;
    reward_open(&r, "length.so", "shape=cosine,max_len=100");
    assert_float_equal(cosine_of("5", 50), 0.75, 1e-6);
    assert_float_equal(cosine_of("4", 50), -0.75, 1e-6);
    assert_true(fabs(cosine_of("5", 10) - (0.75 + 0.25 * cos(0.1 * acos(-1)))) < 1e-6);
    assert_true(fabs(cosine_of("4", 10) + (0.75 + 0.25 * cos(0.1 * acos(-1)))) < 1e-6);
    assert_float_equal(cosine_of("5", 100), 0.5, 1e-6);
    assert_float_equal(cosine_of("5", 150), 0.5, 1e-6); // and does not rise again
    assert_float_equal(cosine_of("4", 150), -0.5, 1e-6);
    reward_close(&r);
    reward_open(&r, "length.so",
                "shape=cosine,max_len=100,right_short=2,right_long=1,wrong_short=-10,wrong_long=0,"
                "exceed=-20,where=hashes");
    assert_float_equal(cosine_of("5", 50), 1.5, 1e-6);
    assert_float_equal(cosine_of("4", 50), -5, 1e-6);
    assert_float_equal(cosine_of("5", 99), 1, 1e-3);
    assert_float_equal(cosine_of("5", 100), -20, 0);
    assert_float_equal(cosine_of("4", 101), -20, 0);
    reward_close(&r);
}

static void verdicts_and_metrics(void **state) {
    (void)state;
    static struct texts t;
    static const char *const said[] = {"#### 5", "#### 4", "          #### 5"};
    double outside;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 3; i++) {
        texts_add(&t, "x", 1, said[i], strlen(said[i]));
        t.meta[i] = (rlhf_str){"{\"answer\": \"5\"}", 15};
    }
    reward_open(&r, "length.so", "shape=cosine,max_len=10");
    assert_int_equal(texts_score(&r, &t, 0, 3), RLHF_OK);
    assert_int_equal(t.verdict[0], RLHF_VERDICT_RIGHT);
    assert_int_equal(t.verdict[1], RLHF_VERDICT_WRONG);
    assert_int_equal(t.verdict[2], RLHF_VERDICT_RIGHT);
    assert_true(rlhf_test_metric(&r.host, "outside", &outside));
    assert_float_equal(outside, 1.0 / 3, 1e-9);
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK); // one more row of the phase
    assert_true(rlhf_test_metric(&r.host, "outside", &outside));
    assert_float_equal(outside, 1.0 / 4, 1e-9);
    reward_close(&r);
    reward_open(&r, "length.so", "max_len=10"); // it does not judge the answer
    assert_int_equal(texts_score(&r, &t, 0, 3), RLHF_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t.verdict[i], RLHF_VERDICT_NONE);
    reward_close(&r);
}

static void rows_matter_to_the_cosine_alone(void **state) {
    (void)state;
    static const rlhf_str row = {"{\"x\": 1}", 8};
    reward_open(&r, "length.so", "max_len=10");
    assert_int_equal(reward_check_row(&r, row), RLHF_OK);
    reward_close(&r);
    reward_open(&r, "length.so", "shape=cosine,max_len=10");
    assert_int_equal(reward_check_row(&r, row), RLHF_E_INVALID);
    assert_string_equal(rlhf_test_failure(&r.host),
                        "the data row has no \"answer\"; expected a string: {\"x\": 1}");
    reward_close(&r);
}

static void what_is_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"max_len=10,cache=11", "cache is 11, more than max_len, 10"},
        {"shape=band,min_len=11,max_len=10", "min_len is 11, more than max_len, 10"},
        {"shape=cosine,max_len=10,where=marker", "where=marker needs marker=TEXT"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(reward_try(&r, "length.so", bad[i][0]), RLHF_E_INVALID);
        assert_string_equal(r.host.fail_text, bad[i][1]);
        assert_int_equal(r.host.live, 0);
    }
}

static void what_acts(void **state) {
    (void)state;
    static const char *const of[3][9] = {{"shape", "max_len", "cache"},
                                         {"shape", "max_len", "right_short", "right_long",
                                          "wrong_short", "wrong_long", "exceed", "field", "units"},
                                         {"shape", "max_len", "min_len", "margin"}};
    static const char *const opened[] = {"max_len=9", "shape=cosine,max_len=9",
                                         "shape=band,max_len=9"};
    static const char *const why[] = {"shape is overlong", "shape is cosine", "shape is band"};
    for (int s = 0; s < 3; s++) {
        reward_open(&r, "length.so", opened[s]);
        rlhf_opt o;
        for (uint32_t k = 0; rlhf_test_opt(r.plugin, k, &o); k++) {
            int acts = s == 1 && k > 9; // an answer's
            for (int i = 0; i < 9 && of[s][i]; i++)
                acts |= strcmp(o.key, of[s][i]) == 0;
            const char *unused = reward_why_unused(&r, o.key);
            if (acts)
                assert_null(unused);
            else
                assert_string_equal(unused, why[s]);
        }
        reward_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(overlong),
                                       cmocka_unit_test(band),
                                       cmocka_unit_test(cosine),
                                       cmocka_unit_test(verdicts_and_metrics),
                                       cmocka_unit_test(rows_matter_to_the_cosine_alone),
                                       cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(what_acts)};
    return cmocka_run_group_tests_name("rewards/length", tests, open_rows, close_rows);
}
