// Means with standard errors, and pass@k (tools/eval/stats.h).
#include "support/check.h"

#include "eval/stats.h"

#include <math.h>

static void check_ok(rlhf_status st, const struct rlhf__error *err) {
    if (st != RLHF_OK) fail_msg("%s", err->text);
}

static void close_to(double got, double want, double eps) {
    if (!(fabs(got - want) <= eps)) fail_msg("%.17g is not %.17g", got, want);
}

// Compares pass@k with the binomials, for all n up to 12.
static double choose(uint32_t n, uint32_t k) {
    double c = 1;
    for (uint32_t i = 1; i <= k; i++)
        c = c * (n - k + i) / i;
    return k > n ? 0 : c;
}

static void pass_at_k_is_unbiased(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 12; n++)
        for (uint32_t c = 0; c <= n; c++)
            for (uint32_t k = 1; k <= n; k++)
                close_to(rlhf__pass_at(n, c, k), 1 - choose(n - c, k) / choose(n, k), 1e-12);
    assert_true(isnan(rlhf__pass_at(3, 1, 4)));
    close_to(rlhf__pass_at(100000, 1, 50000), 0.5, 1e-9); // no overflow
}

static void means_and_clusters(void **state) {
    (void)state;
    const int64_t prompt[7] = {0, 1, 2, 0, 1, 2, 0};
    const uint8_t keep[7] = {1, 1, 1, 1, 1, 1, 0};
    const double x[7] = {1, 0, 0.5, 1, 0.25, 0.75, 99};
    struct rlhf__answers a = {.prompt = prompt, .keep = keep, .n = 7, .n_prompts = 3};
    struct rlhf__estimate e;
    struct rlhf__error err = {0};
    check_ok(rlhf__estimate_mean(&a, x, &e, &err), &err);
    close_to(e.mean, 3.5 / 6, 1e-15);
    // The residuals of the three prompts add up to 5/6, -11/12 and 1/12, in this order. The
    // correction factor for 3 clusters is 3/2.
    close_to(e.error, sqrt(1.5 * (25.0 / 36 + 121.0 / 144 + 1.0 / 144)) / 6, 1e-15);
    a.keep = NULL;
    a.n = 3; // one response each: the unbiased standard deviation / sqrt(n)
    check_ok(rlhf__estimate_mean(&a, x, &e, &err), &err);
    close_to(e.mean, 0.5, 1e-15);
    close_to(e.error, 0.5 / sqrt(3.0), 1e-15);
    const int64_t same[3] = {1, 1, 1}; // one prompt says nothing about others
    a.prompt = same;
    check_ok(rlhf__estimate_mean(&a, x, &e, &err), &err);
    close_to(e.mean, 0.5, 1e-15);
    assert_true(isnan(e.error));
    a.prompt = prompt;
    a.n = 0;
    check_ok(rlhf__estimate_mean(&a, x, &e, &err), &err);
    assert_true(isnan(e.mean) && isnan(e.error));
}

static void pass_of_each_prompt(void **state) {
    (void)state;
    const int64_t prompt[6] = {0, 1, 0, 1, 0, 1};
    const uint8_t keep[6] = {1, 1, 1, 0, 1, 1}, right[6] = {1, 0, 0, 1, 0, 0};
    const struct rlhf__answers a = {.prompt = prompt, .keep = keep, .n = 6, .n_prompts = 2};
    double pass[2];
    struct rlhf__error err = {0};
    check_ok(rlhf__pass_by_prompt(&a, right, 2, pass, &err), &err);
    close_to(pass[0], 2.0 / 3, 1e-15);
    close_to(pass[1], 0, 0);
    check_ok(rlhf__pass_by_prompt(&a, right, 3, pass, &err), &err);
    close_to(pass[0], 1, 0);
    assert_true(isnan(pass[1]));
}

static void error_of_a_share(void **state) {
    (void)state;
    close_to(rlhf__share_error(0.25, 48), 0.0625, 1e-15);
    assert_true(isnan(rlhf__share_error(0.5, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pass_at_k_is_unbiased),
        cmocka_unit_test(means_and_clusters),
        cmocka_unit_test(pass_of_each_prompt),
        cmocka_unit_test(error_of_a_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
