// test_trend.c: checks the ends, the noise, the moves and the limits of made-up series against
// values that were computed by hand.
#include "support/check.h"

#include "verdict/trend.h"

#include <math.h>
#include <stdlib.h>

#define SERIES(...)                                                                                \
    series((const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static struct rlhf__series_set set;

static int renew(void **state) {
    (void)state;
    rlhf__series_set_finish(&set);
    return 0;
}

// Returns a series over phases 1, 2, ...
static const struct rlhf__series *series(const double *v, size_t n) {
    rlhf__series_set_finish(&set);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(rlhf__series_set_put(&set, "x", (int64_t)i + 1, v[i], NULL), RLHF_OK);
    return rlhf__series_of(&set, "x");
}

static const struct rlhf__series *counting(int64_t n) {
    rlhf__series_set_finish(&set);
    for (int64_t i = 1; i <= n; i++)
        assert_int_equal(rlhf__series_set_put(&set, "x", i, (double)i, NULL), RLHF_OK);
    return rlhf__series_of(&set, "x");
}

static void near(double a, double b) {
    if (!(fabs(a - b) <= 1e-12)) fail_msg("%.17g, want %.17g", a, b);
}

static void ends_of_the_last_tenth(void **state) {
    (void)state;
    struct rlhf__first_last e = rlhf__trend_ends(SERIES(3, 1, 7));
    assert_true(e.first == 3 && e.last == 7 && e.width == 1);
    e = rlhf__trend_ends(counting(39)); // 37, 38, 39
    assert_true(e.first == 1 && e.last == 38 && e.width == 3);
    e = rlhf__trend_ends(counting(1000)); // at most 20: 981 to 1000
    assert_true(e.last == 990.5 && e.width == 20);
    e = rlhf__trend_ends(series(NULL, 0));
    assert_true(isnan(e.first) && isnan(e.last) && e.width == 0);
}

static void noise_is_the_median_step(void **state) {
    (void)state;
    near(rlhf__trend_noise(SERIES(0, 1, 3, 3, 103)), 1.05 * 1.5); // steps 1, 2, 0, 100
    near(rlhf__trend_noise(SERIES(0, 1, 3, 103)), 1.05 * 2);
    near(rlhf__trend_noise(SERIES(5, 2)), 1.05 * 3);
    near(rlhf__trend_noise(SERIES(5)), 0);
    // The median step is 0: the root of half the mean square of 0, 0, 4, without the first step.
    near(rlhf__trend_noise(SERIES(5, 5, 5, 5, 1)), sqrt(16.0 / 3 / 2));
    near(rlhf__trend_noise(SERIES(1, 5, 5, 5, 5)), 0);
    near(rlhf__trend_median(SERIES(9, 1, 5)), 5);
    near(rlhf__trend_median(SERIES(9, 1, 5, 2, 2, 4)), 3);
    near(rlhf__trend_median(SERIES(4, 4, 4, 4)), 4);
    near(rlhf__trend_median(counting(1001)), 501);
    near(rlhf__trend_median(series(NULL, 0)), 0);
}

// Noise 1.05: the bar for one value at the end is 3 * 1.05 * sqrt(2) = 4.455.
static void a_move_is_three_standard_errors(void **state) {
    (void)state;
    assert_int_equal(rlhf__trend_moved(SERIES(0, 1, 2, 3, 4)), 0);
    assert_int_equal(rlhf__trend_moved(SERIES(0, 1, 2, 3, 4.5)), 1);
    assert_int_equal(rlhf__trend_moved(SERIES(0, -1, -2, -3, -4.5)), -1);
    assert_int_equal(rlhf__trend_moved(SERIES(0, -1, -2, -3, -4.4)), 0);
    assert_int_equal(rlhf__trend_moved(SERIES(0, 1, 2, 300)), 0); // too few
    assert_int_equal(rlhf__trend_moved(SERIES(1, 1, 1, 1, 1)), 0);
    assert_int_equal(rlhf__trend_moved(SERIES(0.5, 1, 1, 1, 1)), 1); // at once, and for good
    assert_int_equal(rlhf__trend_moved(SERIES(0.5, 0.5, 0.5, 0.5, 0.5004)), 0);
    assert_int_equal(rlhf__trend_moved(series(NULL, 0)), 0);
}

static void limits_that_hold_to_the_end(void **state) {
    (void)state;
    struct rlhf__held h = rlhf__trend_above(SERIES(1, 9, 1, 9, 8), 5);
    assert_true(h.phase == 4 && h.n == 2);
    h = rlhf__trend_above(SERIES(9, 9, 9), 5);
    assert_true(h.phase == 1 && h.n == 3);
    h = rlhf__trend_above(SERIES(9, 9, 5), 5); // the limit itself is not above it
    assert_true(h.phase == 0 && h.n == 0);
    h = rlhf__trend_below(SERIES(9, 4, 5, 4), 5);
    assert_true(h.phase == 4 && h.n == 1);
    h = rlhf__trend_below(series(NULL, 0), 5);
    assert_true(h.phase == 0 && h.n == 0);
}

static void sums(void **state) {
    (void)state;
    near(rlhf__trend_sum(SERIES(1, 2, 4)), 7);
    near(rlhf__trend_mean_of_first(SERIES(1, 2, 4), 2), 1.5);
    near(rlhf__trend_mean_of_first(SERIES(1, 2, 6), 9), 3);
    near(rlhf__trend_sum(series(NULL, 0)), 0);
    near(rlhf__trend_mean_of_first(series(NULL, 0), 5), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ends_of_the_last_tenth, renew),
        cmocka_unit_test_teardown(noise_is_the_median_step, renew),
        cmocka_unit_test_teardown(a_move_is_three_standard_errors, renew),
        cmocka_unit_test_teardown(limits_that_hold_to_the_end, renew),
        cmocka_unit_test_teardown(sums, renew),
    };
    return cmocka_run_group_tests_name("history_trend", tests, NULL, NULL);
}
