// test_period_count.c: period_count.so: counting, the cap, and normalization.
#include "rewards/fixture.h"

static struct reward r;

static void counts(void **state) {
    (void)state;
    reward_open(&r, "period_count.so", "");
    assert_float_equal(score_text(&r, "One. Two. Three"), 2, 0);
    assert_float_equal(score_text(&r, "Well..."), 3, 0);
    assert_float_equal(score_text(&r, "none, at all!"), 0, 0);
    assert_float_equal(score_text(&r, ""), 0, 0);
    reward_close(&r);
}

static void cap(void **state) {
    (void)state;
    reward_open(&r, "period_count.so", "cap=2");
    assert_float_equal(score_text(&r, "."), 1, 0);
    assert_float_equal(score_text(&r, "...."), 2, 0);
    reward_close(&r);
}

// In the fixture, ids are bytes, so "a.b." has four tokens.
static void per_token(void **state) {
    (void)state;
    reward_open(&r, "period_count.so", "per_token=true");
    assert_float_equal(score_text(&r, "a.b."), 0.5, 0);
    assert_float_equal(score_text(&r, ""), 0, 0);
    reward_close(&r);
    reward_open(&r, "period_count.so", "per_token=true,cap=1");
    assert_float_equal(score_text(&r, "a.b."), 0.25, 0);
    reward_close(&r);
}

// The prompt is not counted.
static void response_only(void **state) {
    (void)state;
    static struct texts t;
    texts_add(&t, "A. B. C. ", 9, "d.", 2);
    reward_open(&r, "period_count.so", "");
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    assert_float_equal(t.seq[0], 1, 0);
    reward_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(cap),
                                       cmocka_unit_test(per_token),
                                       cmocka_unit_test(response_only)};
    return cmocka_run_group_tests_name("rewards/period_count", tests, NULL, NULL);
}
