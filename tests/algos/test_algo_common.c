// test_algo_common.c: compares the pure functions of the algorithms with numbers computed by hand.
#include "algos/fixture.h"

#include "common/advantage.h"
#include "common/kl.h"
#include "common/rows.h"
#include "common/surrogate.h"
#include "common/whiten.h"

#include <math.h>

static void kl_estimators(void **state) {
    (void)state;
    double x = -1, f = -1 - log(2); // the policy gives the token twice the probability
    assert_near(rlhf__kl(RLHF__KL_K1, x, f), log(2), 1e-15, "k1");
    assert_near(rlhf__kl(RLHF__KL_K2, x, f), log(2) * log(2) / 2, 1e-15, "k2");
    assert_near(rlhf__kl(RLHF__KL_K3, x, f), 0.5 + log(2) - 1, 1e-15, "k3");
    assert_near(rlhf__kl_dx(RLHF__KL_K1, x, f), 1, 1e-15, "dk1");
    assert_near(rlhf__kl_dx(RLHF__KL_K2, x, f), log(2), 1e-15, "dk2");
    assert_near(rlhf__kl_dx(RLHF__KL_K3, x, f), 0.5, 1e-15, "dk3");
    for (int k = 0; k < 3; k++)
        assert_true(rlhf__kl(k, x, x) == 0);
    // k3 of nearly equal log-probs keeps its precision: (f - x)^2 / 2
    assert_near(rlhf__kl(RLHF__KL_K3, 0, 1e-6) * 2e12, 1, 1e-3, "small k3");
}

// Exact expectation over a three-way distribution: k1 and k3 are unbiased for KL(p || q).
static void kl_is_unbiased(void **state) {
    (void)state;
    const double p[] = {0.5, 0.3, 0.2}, q[] = {0.2, 0.3, 0.5};
    double exact = 0, k1 = 0, k3 = 0;
    for (int i = 0; i < 3; i++) {
        exact += p[i] * log(p[i] / q[i]);
        k1 += p[i] * rlhf__kl(RLHF__KL_K1, log(p[i]), log(q[i]));
        k3 += p[i] * rlhf__kl(RLHF__KL_K3, log(p[i]), log(q[i]));
    }
    assert_near(k1, exact, 1e-12, "k1");
    assert_near(k3, exact, 1e-12, "k3");
}

static void adaptive_step(void **state) {
    (void)state;
    assert_near(rlhf__kl_adapt(0.15, 6, 6, 512, 10000), 0.15, 1e-15, "on target");
    assert_near(rlhf__kl_adapt(0.15, 60, 6, 512, 10000), 0.15 * 1.01024, 1e-15, "far above");
    assert_near(rlhf__kl_adapt(0.15, 0, 6, 512, 10000), 0.15 * 0.98976, 1e-15, "far below");
    assert_near(rlhf__kl_adapt(0.15, 6.6, 6, 512, 10000), 0.15 * 1.00512, 1e-12, "a little above");
}

static void whitening(void **state) {
    (void)state;
    double x[] = {1, 3}; // mean 2, biased variance 1, unbiased 2
    rlhf__whiten(x, 2, RLHF__WHITEN_RSQRT, 0, 1);
    assert_near(x[0], -1, 1e-15, "rsqrt");
    double y[] = {1, 3};
    rlhf__whiten(y, 2, RLHF__WHITEN_STD, 0, 0);
    assert_near(y[0], 2 - 1 / sqrt(2), 1e-15, "std, mean kept");
    assert_near(y[1], 2 + 1 / sqrt(2), 1e-15, "std, mean kept");
    double z[] = {1, 3}; // eps inside the square root: 1 / sqrt(1 + 3)
    rlhf__whiten(z, 2, RLHF__WHITEN_RSQRT, 3, 1);
    assert_near(z[1], 0.5, 1e-15, "eps inside");
    double w[] = {1, 3}; // eps outside: 1 / (sqrt(2) + 3)
    rlhf__whiten(w, 2, RLHF__WHITEN_STD, 3, 1);
    assert_near(w[1], 1 / (sqrt(2) + 3), 1e-15, "eps outside");
    double same[] = {5, 5, 5};
    rlhf__whiten(same, 3, RLHF__WHITEN_RSQRT, 1e-8, 1);
    for (int i = 0; i < 3; i++)
        assert_true(same[i] == 0);
    double one[] = {5};
    rlhf__whiten(one, 1, RLHF__WHITEN_STD, 1e-8, 1);
    assert_true(one[0] == 0);
    rlhf__whiten(NULL, 0, RLHF__WHITEN_STD, 1e-8, 1);
}

static void moments_of_a_union(void **state) {
    (void)state;
    const double x[] = {1, 2, 4, 8, 16};
    struct rlhf__moments all = rlhf__moments(x, 5);
    struct rlhf__moments two = rlhf__moments_merge(rlhf__moments(x, 2), rlhf__moments(x + 2, 3));
    assert_near(two.mean, all.mean, 1e-15, "mean");
    assert_near(two.m2, all.m2, 1e-14, "m2");
    assert_near(rlhf__var_biased(all), 29.76, 1e-12, "biased");
    assert_near(rlhf__var_unbiased(all), 37.2, 1e-12, "unbiased");
    struct rlhf__moments none = rlhf__moments(x, 0);
    assert_int_equal(rlhf__moments_merge(none, all).n, 5);
    assert_int_equal(rlhf__moments_merge(all, none).n, 5);
    assert_true(rlhf__var_unbiased(none) == 0 && rlhf__var_biased(none) == 0);
}

static void gae_by_hand(void **state) {
    (void)state;
    const double r[] = {0, 0, 1}, v[] = {0.5, 0.25, 0.5};
    double a[3], ret[3];
    // deltas at gamma 1: -0.25, 0.25, 0.5; lambda 0.5
    rlhf__gae(r, v, 3, 1, 0.5, a, ret);
    assert_near(a[2], 0.5, 1e-15, "last");
    assert_near(a[1], 0.25 + 0.5 * 0.5, 1e-15, "middle");
    assert_near(a[0], -0.25 + 0.5 * 0.5, 1e-15, "first");
    assert_near(ret[0], 0.5, 1e-15, "return");
    // With lambda 1 and gamma 1, every return is the plain sum of the rewards that follow (Monte
    // Carlo).
    rlhf__gae(r, v, 3, 1, 1, a, ret);
    for (int t = 0; t < 3; t++)
        assert_near(ret[t], 1, 1e-15, "Monte Carlo");
    rlhf__one_step(r, v, 3, a, ret);
    assert_near(a[0], 0.25 - 0.5, 1e-15, "one step first");
    assert_near(a[2], 1 - 0.5, 1e-15, "one step last");
    assert_near(ret[0], 0.25, 1e-15, "one step return");
    rlhf__gae(NULL, NULL, 0, 1, 1, NULL, NULL);
    rlhf__one_step(NULL, NULL, 0, NULL, NULL);
}

// If every step has a reward, GAE's advantages grow with the length.
static void broadcast_reward_explodes(void **state) {
    (void)state;
    double end[40] = {0}, every[40], v[40] = {0}, a[40], ret[40];
    end[39] = 1;
    for (int t = 0; t < 40; t++)
        every[t] = 1;
    rlhf__gae(end, v, 40, 1, 0.95, a, ret);
    double calm = a[0];
    rlhf__gae(every, v, 40, 1, 0.95, a, ret);
    assert_true(calm < 1 && a[0] > 15);
}

static void groups(void **state) {
    (void)state;
    const double y[] = {1, 7, 3, 7, 5, 7, 2};
    const int32_t group[] = {4, -1, 4, -1, 4, -1, 9}; // mixed order, negative, and a single row
    int64_t order[7];
    double x[7];
    struct rlhf__group_stats s = rlhf__group_normalize(y, group, 7, 0, 1, 1, order, x);
    assert_int_equal(s.groups, 3);
    assert_int_equal(s.zero, 2);
    assert_near(s.std_sum, 2, 1e-15, "std");
    assert_near(x[0], -1, 1e-15, "unbiased");
    assert_true(x[2] == 0 && x[1] == 0 && x[3] == 0 && x[5] == 0 && x[6] == 0);
    rlhf__group_normalize(y, group, 7, 0, 0, 1, order, x);
    assert_near(x[4], 2 / sqrt(8.0 / 3), 1e-15, "biased");
    rlhf__group_normalize(y, group, 7, 0.5, 1, 1, order, x);
    assert_near(x[4], 2 / 2.5, 1e-15, "eps");
    rlhf__group_normalize(y, group, 7, 0.5, 1, 0, order, x);
    assert_near(x[4], 2, 1e-15, "mean only");
    s = rlhf__group_normalize(y, group, 7, 0, 1, 1, order, NULL);
    assert_int_equal(s.groups, 3);
    assert_int_equal(rlhf__group_normalize(y, group, 0, 0, 1, 1, order, x).groups, 0);
}

// The result for a row does not depend on the order of the rows of its group.
static void groups_are_permutable(void **state) {
    (void)state;
    enum { N = 60 };
    double y[N], x[N], py[N], px[N];
    int32_t g[N], pg[N], at[N];
    int64_t order[N];
    rlhf_rng r = {9, 9, 0};
    for (int i = 0; i < N; i++) {
        y[i] = rlhf_rng_next(&r);
        g[i] = (int32_t)rlhf_rng_below(&r, 7);
        at[i] = i;
    }
    for (int i = N - 1; i > 0; i--) {
        int j = (int)rlhf_rng_below(&r, (uint64_t)i + 1), swap = at[i];
        at[i] = at[j];
        at[j] = swap;
    }
    for (int i = 0; i < N; i++) {
        py[i] = y[at[i]];
        pg[i] = g[at[i]];
    }
    rlhf__group_normalize(y, g, N, 1e-4, 1, 1, order, x);
    rlhf__group_normalize(py, pg, N, 1e-4, 1, 1, order, px);
    for (int i = 0; i < N; i++)
        assert_near(px[i], x[at[i]], 1e-12, "permuted");
}

static void standardize(void **state) {
    (void)state;
    double x[] = {1, 2, 3}, same[] = {0.1, 0.1, 0.1};
    rlhf__standardize(x, 3, 0, 1);
    assert_near(x[0], -1, 1e-15, "unbiased");
    rlhf__standardize(same, 3, 0, 1);
    assert_true(same[0] == 0 && same[1] == 0 && same[2] == 0);
    rlhf__standardize(NULL, 0, 0, 1);
}

// 0.6 + 0.1 and 0.7 + 0 in f32 are no spread; one part in a million is.
static void float_noise_is_no_spread(void **state) {
    (void)state;
    const double sum = (double)(0.6F + 0.1F), plain = (double)0.7F;
    const double y[6] = {sum, plain, plain, 1, 1.000001, 1};
    const int32_t group[6] = {0, 0, 0, 1, 1, 1};
    double x[6], z[2] = {sum, plain};
    int64_t order[6];
    uint8_t flat[6];
    assert_true(sum != plain);
    struct rlhf__group_stats s = rlhf__group_normalize(y, group, 6, 1e-8, 1, 1, order, x);
    assert_int_equal(s.zero, 1);
    assert_true(x[0] == 0 && x[1] == 0 && x[2] == 0 && x[4] > 1);
    rlhf__flat_groups(x, group, 6, order, flat);
    assert_true(flat[0] && !flat[3]);
    rlhf__leave_one_out(y, group, 6, order, x);
    assert_true(x[0] == 0 && x[4] > 0);
    rlhf__standardize(z, 2, 0, 1);
    assert_true(z[0] == 0 && z[1] == 0);
}

static void surrogate_cases(void **state) {
    (void)state;
    static const struct {
        double ratio, adv, dual, loss, d;
        int clipped;
    } cases[] = {
        {1.0, 2, 0, -2, -2, 0},    {1.5, 2, 0, -2.6, 0, 1}, // above the upper bound, A > 0
        {0.5, 2, 0, -1, -2, 0},                             // below, A > 0: still pulled up
        {0.5, -2, 0, 1.6, 0, 1},                            // below the lower bound, A < 0
        {1.5, -2, 0, 3, 2, 0},                              // above, A < 0: still pushed down
        {9.0, -2, 3, 6, 0, 1},                              // dual clip
        {2.0, -2, 3, 4, 2, 0},     {1.3, 0, 0, 0, 0, 0},
        {INFINITY, 0, 0, 0, 0, 0}, {INFINITY, 1, 0, -1.3, 0, 1},
    };
    const struct rlhf__clip base = {0.2, 0.3, 0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rlhf__clip clip = base;
        double d;
        int clipped;
        clip.dual = cases[i].dual;
        assert_near(rlhf__surrogate(cases[i].ratio, cases[i].adv, &clip, &d, &clipped),
                    cases[i].loss, 1e-12, "loss");
        assert_near(d, cases[i].d, 1e-12, "derivative");
        assert_int_equal(clipped, cases[i].clipped);
    }
}

static void weights(void **state) {
    (void)state;
    struct rlhf__totals t = {4, 100, 50, 600, 5};
    assert_near(rlhf__token_weight(RLHF__AGG_TOKEN, &t, 10), 0.01, 1e-15, "token");
    assert_near(rlhf__token_weight(RLHF__AGG_SEQUENCE, &t, 10), 1.0 / 40, 1e-15, "sequence");
    assert_near(rlhf__token_weight(RLHF__AGG_MAX_LEN, &t, 10), 1.0 / 200, 1e-15, "max_len");
    assert_near(rlhf__token_weight(RLHF__AGG_DAPO, &t, 10), 5.0 / 600, 1e-15, "dapo");
    assert_near(rlhf__token_weight(RLHF__AGG_GRPO, &t, 10), 1.0 / 40, 1e-15, "grpo");
    assert_near(rlhf__token_weight(RLHF__AGG_BNPO, &t, 10), 0.01, 1e-15, "bnpo");
    assert_near(rlhf__token_weight(RLHF__AGG_DR_GRPO, &t, 10), 1.0 / 200, 1e-15, "dr_grpo");
    t.phase_tokens = 0;
    assert_near(rlhf__token_weight(RLHF__AGG_DAPO, &t, 10), 0.01, 1e-15, "dapo, unknown phase");
}

static void row_checks(void **state) {
    (void)state;
    const int32_t offset[] = {0, 3, 5}, prompt[] = {1, 2};
    assert_null(rlhf__rows_check(offset, prompt, 2, 5));
    assert_int_equal(rlhf__response_tokens(offset, prompt, 2), 2);
    assert_null(rlhf__rows_check(NULL, NULL, 0, 0));
    assert_non_null(rlhf__rows_check(NULL, NULL, 0, 3));
    assert_non_null(rlhf__rows_check(NULL, prompt, 2, 5));
    assert_non_null(rlhf__rows_check(offset, prompt, 2, 6));
    const int32_t down[] = {0, 3, 2}, late[] = {1, 3, 5}, long_prompt[] = {1, 3}, minus[] = {1, -1};
    assert_non_null(rlhf__rows_check(down, prompt, 2, 2));
    assert_non_null(rlhf__rows_check(late, prompt, 2, 5));
    assert_non_null(rlhf__rows_check(offset, long_prompt, 2, 5));
    assert_non_null(rlhf__rows_check(offset, minus, 2, 5));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kl_estimators),
                                       cmocka_unit_test(kl_is_unbiased),
                                       cmocka_unit_test(adaptive_step),
                                       cmocka_unit_test(whitening),
                                       cmocka_unit_test(moments_of_a_union),
                                       cmocka_unit_test(gae_by_hand),
                                       cmocka_unit_test(groups),
                                       cmocka_unit_test(broadcast_reward_explodes),
                                       cmocka_unit_test(standardize),
                                       cmocka_unit_test(float_noise_is_no_spread),
                                       cmocka_unit_test(groups_are_permutable),
                                       cmocka_unit_test(surrogate_cases),
                                       cmocka_unit_test(weights),
                                       cmocka_unit_test(row_checks)};
    return cmocka_run_group_tests_name("algos/common", tests, NULL, NULL);
}
