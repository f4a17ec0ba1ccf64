// Compares the functions of rlhf/exact.h with correctly rounded results. Also compares the results
// of their first stage with those of their second stage.
#include "support/numbers.h"

#include <rlhf/exact.h>
#include <rlhf/rng.h>
#include <stdio.h>

#define N(a) (sizeof(a) / sizeof *(a))

static double of(uint64_t bits) { return rlhf_x_double(bits); }

static void same(const char *name, double x, double got, double want) {
    if (isnan(want) ? isnan(got) : rlhf_x_bits(got) == rlhf_x_bits(want)) return;
    fail_msg("%s(%a) is %a, not %a", name, x, got, want);
}

static double exp_wide(double x) { return rlhf_x_exp_wide(x, 0); }
static double expm1_wide(double x) { return rlhf_x_exp_wide(x, 1); }
static double log_wide(double x) { return rlhf_x_log_wide(x, 0, 53); }
static double log1p_wide(double x) { return rlhf_x_log_wide(x, 1, 53); }
static double sin_wide(double x) { return rlhf_x_sin_wide(x, 0); }
static double cos_wide(double x) { return rlhf_x_sin_wide(x, 1); }

// The correctly rounded results of make_vectors.py: arguments and result, as the bits of doubles.
enum { MAX_VECTORS = 400 };

static struct vectors {
    const char *name;
    size_t n;
    uint64_t v[MAX_VECTORS][3];
} vectors[] = {{.name = "exp"}, {.name = "expm1"}, {.name = "log"},  {.name = "log1p"},
               {.name = "sin"}, {.name = "cos"},   {.name = "logf"}, {.name = "pow"}};

static const struct vectors *vectors_of(const char *name) {
    for (size_t i = 0; i < N(vectors); i++)
        if (strcmp(vectors[i].name, name) == 0) return &vectors[i];
    fail_msg("no vectors for %s", name);
    return NULL;
}

static int setup(void **state) {
    (void)state;
    json_t *all = numbers_open("exact/vectors.json");
    for (size_t k = 0; k < N(vectors); k++) {
        struct vectors *to = &vectors[k];
        const int words = strcmp(to->name, "pow") == 0 ? 3 : 2;
        const json_t *list = numbers_get(all, to->name);
        to->n = json_array_size(list);
        assert_true(to->n >= 50 && to->n <= MAX_VECTORS);
        for (size_t i = 0; i < to->n; i++) {
            const char *at = json_string_value(json_array_get(list, i));
            char *end = NULL;
            for (int w = 0; w < words; w++, at = end)
                to->v[i][w] = strtoull(at, &end, 16);
            assert_true(*end == 0);
        }
    }
    json_decref(all);
    return 0;
}

static void check(const char *name, double (*f)(double), double (*wide)(double), double least) {
    const struct vectors *of_f = vectors_of(name);
    for (size_t i = 0; i < of_f->n; i++) {
        const double x = of(of_f->v[i][0]), want = of(of_f->v[i][1]);
        same(name, x, f(x), want);
        if (fabs(x) >= least && isfinite(want)) same(name, x, wide(x), want);
    }
}

static void results_are_correctly_rounded(void **state) {
    (void)state;
    const double tiny = 0x1p-54;
    check("exp", rlhf_exp, exp_wide, tiny);
    check("expm1", rlhf_expm1, expm1_wide, tiny);
    check("log", rlhf_log, log_wide, 0);
    check("log1p", rlhf_log1p, log1p_wide, tiny);
    check("sin", rlhf_sin, sin_wide, 0x1p-27);
    check("cos", rlhf_cos, cos_wide, 0x1p-27);
    const struct vectors *of_logf = vectors_of("logf"), *of_pow = vectors_of("pow");
    for (size_t i = 0; i < of_logf->n; i++) {
        const double x = of(of_logf->v[i][0]);
        same("logf", x, (double)rlhf_log_f32((float)x), of(of_logf->v[i][1]));
        same("logf", x, rlhf_x_log_wide(x, 0, 24), of(of_logf->v[i][1]));
    }
    for (size_t i = 0; i < of_pow->n; i++) {
        const double x = of(of_pow->v[i][0]), y = of(of_pow->v[i][1]), got = rlhf_pow(x, y);
        if (rlhf_x_bits(got) != of_pow->v[i][2])
            fail_msg("pow(%a, %a) is %a, not %a", x, y, got, of(of_pow->v[i][2]));
    }
}

// ---- the two stages ----

struct range {
    const char *name;
    double (*f)(double), (*wide)(double), low, high;
};

static void both_stages_agree(void **state) {
    (void)state;
    static const struct range range[] = {
        {"exp", rlhf_exp, exp_wide, -745, 709},      {"exp", rlhf_exp, exp_wide, -1e-5, 1e-5},
        {"expm1", rlhf_expm1, expm1_wide, -50, 709}, {"expm1", rlhf_expm1, expm1_wide, -1e-6, 1e-6},
        {"log", rlhf_log, log_wide, 0, 1e9},         {"log", rlhf_log, log_wide, 0.9, 1.1},
        {"log1p", rlhf_log1p, log1p_wide, -1, 3},    {"log1p", rlhf_log1p, log1p_wide, 0, 1e60},
        {"sin", rlhf_sin, sin_wide, -10, 10},        {"sin", rlhf_sin, sin_wide, 0, 1e25},
        {"cos", rlhf_cos, cos_wide, -10, 10},        {"cos", rlhf_cos, cos_wide, 0, 1e25},
    };
    rlhf_rng rng = {30, rlhf_rng_stream("exact"), 0};
    for (size_t i = 0; i < N(range); i++)
        for (int n = 0; n < 2000; n++) {
            const struct range *r = &range[i];
            const double x = r->low + (r->high - r->low) * rlhf_rng_next(&rng);
            same(r->name, x, r->f(x), r->wide(x));
        }
    for (int n = 0; n < 4000; n++) {
        const double x = 3 * rlhf_rng_next(&rng),
                     y = n & 1 ? 600 * rlhf_rng_next(&rng) - 300 : floor(500 * rlhf_rng_next(&rng));
        if (x > 0 && y != 0) same("pow", x, rlhf_pow(x, y), rlhf_x_pow_wide(x, y));
    }
}

// rlhf_log's first stage is right wherever it is sure, and it is sure in at least 19 of 20 cases.
static void a_first_try_is_right_or_unsure(void **state) {
    (void)state;
    static const double range[][2] = {{0, 1}, {1, 50000}, {0.99, 1.01}, {0, 1e300}, {0, 1e-300}};
    rlhf_rng rng = {31, rlhf_rng_stream("exact"), 0};
    for (size_t i = 0; i < N(range); i++) {
        int sure, open = 0;
        for (int n = 0; n < 40000; n++) {
            const double x = range[i][0] + (range[i][1] - range[i][0]) * rlhf_rng_next(&rng);
            const double y = rlhf_x_log_quick(fmax(x, 0x1p-1022), &sure);
            if (sure) same("log", x, y, rlhf_x_log_bits(fmax(x, 0x1p-1022), 53));
            open += !sure;
        }
        if (open > 2000) fail_msg("range %d: %d of 40000 cases are open", (int)i, open);
    }
    const struct vectors *of_log = vectors_of("log");
    for (size_t i = 0; i < of_log->n; i++) {
        const double x = of(of_log->v[i][0]);
        int sure;
        if (!(x >= 0x1p-1022) || x == INFINITY) continue;
        const double y = rlhf_x_log_quick(x, &sure);
        if (sure) same("log", x, y, of(of_log->v[i][1]));
    }
    // around 1, where the result is small
    for (int n = -20000; n < 20000; n++) {
        int sure;
        const double near[] = {1 + n * 0x1p-52, 1 + n * 0x1p-16};
        for (int k = 0; k < 2; k++) {
            const double y = rlhf_x_log_quick(near[k], &sure);
            if (sure) same("log", near[k], y, rlhf_x_log_bits(near[k], 53));
        }
    }
}

// The first stage has to leave hard cases to the second stage.
static void hard_cases_need_the_second_stage(void **state) {
    (void)state;
    int sure, left = 0;
    const struct vectors *of_expm1 = vectors_of("expm1");
    for (size_t i = 0; i < of_expm1->n; i++) {
        const double x = of(of_expm1->v[i][0]);
        if (!(fabs(x) < 0x1p-30) || fabs(x) < 0x1p-53) continue;
        const rlhf_x_i128 a = (rlhf_x_i128)rlhf_x_fixed(x);
        struct rlhf_x v = rlhf_x_exp_of(x < 0 ? -a : a, 0);
        v.m = v.e == -127 ? v.m - RLHF_X_1 : RLHF_X_1 - (v.m >> 1);
        v.e = -127;
        rlhf_x_round(v, 53, &sure);
        left += !sure;
    }
    assert_true(left >= 3);
    assert_true(left < 20);
}

static void logf_is_the_rounded_logarithm(void **state) {
    (void)state;
    for (uint32_t u = 1; u < 0x7f800000; u += 30011) {
        float x;
        memcpy(&x, &u, sizeof x);
        const double a = (double)rlhf_log_f32(x);
        if (rlhf_x_bits(a) != rlhf_x_bits(rlhf_x_log_bits((double)x, 24)))
            fail_msg("logf(%a) is %a", (double)x, a);
    }
}

static void special_values(void **state) {
    (void)state;
    const double inf = INFINITY;
    same("exp", inf, rlhf_exp(inf), inf);
    same("exp", -inf, rlhf_exp(-inf), 0);
    same("exp", 710, rlhf_exp(710), inf);
    same("exp", -1e9, rlhf_exp(-1e9), 0);
    same("exp", 0, rlhf_exp(-0.0), 1);
    same("exp", NAN, rlhf_exp(NAN), NAN);
    same("expm1", -0.0, rlhf_expm1(-0.0), -0.0);
    same("expm1", -inf, rlhf_expm1(-inf), -1);
    same("expm1", 1e4, rlhf_expm1(1e4), inf);
    same("expm1", NAN, rlhf_expm1(NAN), NAN);
    same("log", 0, rlhf_log(-0.0), -inf);
    same("log", 1, rlhf_log(1), 0);
    same("log", -1, rlhf_log(-1), NAN);
    same("log", inf, rlhf_log(inf), inf);
    same("log", NAN, rlhf_log(NAN), NAN);
    same("log1p", -1, rlhf_log1p(-1), -inf);
    same("log1p", -0.0, rlhf_log1p(-0.0), -0.0);
    same("log1p", -2, rlhf_log1p(-2), NAN);
    same("log1p", inf, rlhf_log1p(inf), inf);
    same("logf", 0, (double)rlhf_log_f32(0), -inf);
    same("logf", -1, (double)rlhf_log_f32(-1), NAN);
    same("logf", inf, (double)rlhf_log_f32(INFINITY), inf);
    same("sin", -0.0, rlhf_sin(-0.0), -0.0);
    same("sin", inf, rlhf_sin(inf), NAN);
    same("cos", 0, rlhf_cos(0), 1);
    same("cos", NAN, rlhf_cos(NAN), NAN);
}

static void special_powers(void **state) {
    (void)state;
    static const double value[] = {0.0,      -0.0,      1,   -1,     2,      -2,      0.5,
                                   -0.5,     3,         -3,  1e300,  -1e300, 1e-300,  2.5,
                                   INFINITY, -INFINITY, NAN, 0x1p53, 0x1p54, -0x1p52, 5e-324};
    for (size_t i = 0; i < N(value); i++)
        for (size_t k = 0; k < N(value); k++) {
            const double x = value[i], y = value[k], want = pow(x, y), got = rlhf_pow(x, y);
            const int close = isfinite(want) && fabs(got - want) <= fabs(want) * 0x1p-51;
            if (!close) same("pow", x, got, want);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_correctly_rounded),
        cmocka_unit_test(both_stages_agree),
        cmocka_unit_test(a_first_try_is_right_or_unsure),
        cmocka_unit_test(hard_cases_need_the_second_stage),
        cmocka_unit_test(logf_is_the_rounded_logarithm),
        cmocka_unit_test(special_values),
        cmocka_unit_test(special_powers),
    };
    return cmocka_run_group_tests_name("exact", tests, setup, NULL);
}
