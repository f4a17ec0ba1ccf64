// test_row_stats.c: the standard error of a mean over prompts, and the correlation with the length.
#include "support/check.h"

#include "batch/row_stats.h"

#include <math.h>

static int64_t source[] = {7, 7, 3, 3};
static int32_t offset[] = {0, 3, 7, 12, 18}, prompt_len[] = {2, 2, 2, 2};

static struct rlhf__rows rows(void) {
    return (struct rlhf__rows){
        .n = 4, .source = source, .offset = offset, .prompt_len = prompt_len};
}

static void errors(void **state) {
    (void)state;
    const struct rlhf__rows e = rows();
    static const float x[] = {1, 0, 1, 1};
    static const uint8_t first[] = {1, 1, 0, 0}, some[] = {1, 0, 1, 0};
    // residuals of the prompts: -0.5 and 0.5
    assert_true(fabs(rlhf__rows_error(&e, x, NULL) - sqrt(0.5 * 2) / 4) < 1e-15);
    assert_true(isnan(rlhf__rows_error(&e, x, first))); // a single prompt
    assert_true(rlhf__rows_error(&e, x, some) == 0);
}

static void correlations(void **state) {
    (void)state;
    const struct rlhf__rows e = rows(); // 1 to 4 tokens of response
    static const float falls[] = {4, 3, 2, 1}, rises[] = {-1, 0, 1, 2}, same[] = {2, 2, 2, 2},
                       some[] = {1, 0, 0, 1};
    assert_true(fabs(rlhf__rows_length_correlation(&e, falls) + 1) < 1e-12);
    assert_true(fabs(rlhf__rows_length_correlation(&e, rises) - 1) < 1e-12);
    assert_true(fabs(rlhf__rows_length_correlation(&e, some)) < 1e-12);
    assert_true(isnan(rlhf__rows_length_correlation(&e, same)));
}

// Five equal responses to one prompt have ten pairs. Another prompt has other responses.
static void noise(void **state) {
    (void)state;
    static int64_t one[] = {7, 7, 7, 7, 7, 3, 3};
    static int32_t at[] = {0, 2, 4, 6, 8, 10, 12, 14}, begin[] = {1, 1, 1, 1, 1, 1, 1},
                   ids[] = {5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5, 8};
    const struct rlhf__rows e = {
        .n = 7, .source = one, .offset = at, .prompt_len = begin, .ids = ids};
    static const float by_text[] = {1, 1, 1, 1, 1, 0, 2}, chance[] = {1, 0, 1, 0, 1, 0, 0},
                       same[] = {2, 2, 2, 2, 2, 2, 2};
    assert_true(rlhf__rows_noise(&e, by_text) == 0);
    // six of the ten pairs differ by 1; the variance is 3/7 * 4/7
    assert_true(fabs(rlhf__rows_noise(&e, chance) - 0.3 / (12.0 / 49)) < 1e-12);
    assert_true(isnan(rlhf__rows_noise(&e, same)));
    ids[1] = 9; // only four responses are equal, which makes six pairs
    assert_true(isnan(rlhf__rows_noise(&e, chance)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),
        cmocka_unit_test(correlations),
        cmocka_unit_test(noise),
    };
    return cmocka_run_group_tests_name("row_stats", tests, NULL, NULL);
}
