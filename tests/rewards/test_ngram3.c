// test_ngram3.c: ngram3.so: the share of repeated n-grams, compared with cases counted by hand and
// with a slow implementation.
#include "rewards/fixture.h"

static struct reward r;

static void words_by_hand(void **state) {
    (void)state;
    reward_open(&r, "ngram3.so", "");
    assert_float_equal(score_text(&r, "a b c d e"), 0, 0);               // 3 distinct of 3
    assert_float_equal(score_text(&r, "a b c a b c"), 0.25, 1e-7);       // abc bca cab abc
    assert_float_equal(score_text(&r, "so so so so so so"), 0.75, 1e-7); // 1 distinct of 4
    assert_float_equal(score_text(&r, "two words"), 0, 0);               // no trigrams
    assert_float_equal(score_text(&r, ""), 0, 0);
    assert_float_equal(score_text(&r, " \t\n\v\f\r "), 0, 0);
    assert_float_equal(score_text(&r, "  a  b\tc\na b c "), 0.25, 1e-7); // white space is one gap
    assert_float_equal(score_text(&r, "a b c A b c"), 0, 0);             // case counts
    assert_float_equal(score_text(&r, "ab c d a bc d"), 0, 0);           // word limits count
    reward_close(&r);
}

static void other_lengths(void **state) {
    (void)state;
    reward_open(&r, "ngram3.so", "n=1");
    assert_float_equal(score_text(&r, "a b a b"), 0.5, 1e-7);
    reward_close(&r);
    reward_open(&r, "ngram3.so", "n=2");
    assert_float_equal(score_text(&r, "a b a b"), 1.0 / 3, 1e-6);
    reward_close(&r);
    reward_open(&r, "ngram3.so", "n=64");
    assert_float_equal(score_text(&r, "a b a b"), 0, 0);
    reward_close(&r);
}

static void tokens(void **state) {
    (void)state;
    reward_open(&r, "ngram3.so", "unit=tokens"); // the fixture's tokens are bytes
    assert_float_equal(score_text(&r, "abcabc"), 0.25, 1e-7);
    assert_float_equal(score_text(&r, "ab"), 0, 0);
    assert_float_equal(score_text(&r, ""), 0, 0);
    reward_close(&r);
}

// For random token strings over a small alphabet, compares the count with the count of a quadratic
// algorithm.
static void agrees_with_a_slow_count(void **state) {
    (void)state;
    rlhf_rng g = {3, 3, 0};
    for (int n = 1; n <= 4; n++) {
        char options[64];
        snprintf(options, sizeof options, "unit=tokens,n=%d", n);
        reward_open(&r, "ngram3.so", options);
        for (int trial = 0; trial < 200; trial++) {
            char text[120];
            int len = (int)rlhf_rng_below(&g, 100), distinct = 0, grams = len - n + 1;
            uint64_t letters = 1 + rlhf_rng_below(&g, 5);
            for (int i = 0; i < len; i++)
                text[i] = (char)('a' + (int)rlhf_rng_below(&g, letters));
            text[len] = 0;
            for (int i = 0; i < grams; i++) {
                int seen = 0;
                for (int j = 0; j < i && !seen; j++)
                    seen = memcmp(text + i, text + j, (size_t)n) == 0;
                distinct += !seen;
            }
            double want = grams > 0 ? 1 - (double)distinct / grams : 0;
            assert_float_equal(score_text(&r, text), want, 1e-6);
        }
        reward_close(&r);
    }
}

static void out_of_memory(void **state) {
    (void)state;
    assert_int_equal(reward_try(&r, "ngram3.so", ""), RLHF_OK);
    static struct texts t;
    texts_add(&t, "x", 1, "a b c d", 7);
    rlhf_test_fail_alloc(&r.host, 1, 0);
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_E_NOMEM);
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    reward_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_by_hand), cmocka_unit_test(other_lengths), cmocka_unit_test(tokens),
        cmocka_unit_test(agrees_with_a_slow_count), cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests_name("rewards/ngram3", tests, NULL, NULL);
}
