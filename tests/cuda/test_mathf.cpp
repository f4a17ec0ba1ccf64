// test_mathf.cpp: compares kernels/cuda/machine/mathf.h with libm's double functions, in units in
// the last place (ulp). Tests a sample of all floats, and all floats near the boundaries of each
// case.
#include "machine/mathf.h"

#include <cmath>
extern "C" {
#include "support/check.h"
}

namespace {

float bits(unsigned u) { return __uint_as_float(u); }

// Returns |got - want| in ulp of `want` rounded to f32.
double ulps(float got, double want) {
    const float near = (float)want;
    if (std::isnan(want)) return std::isnan(got) ? 0.0 : INFINITY;
    if (std::isinf(near) || std::isinf(got)) return got == near ? 0.0 : INFINITY;
    int e;
    std::frexp(want, &e);
    return std::fabs((double)got - want) / std::ldexp(1.0, (e < -125 ? -125 : e) - 24);
}

struct function {
    const char *name;
    float (*ours)(float);
    double (*exact)(double);
    double bound; // ulps
    float edges[8];
};

struct worst {
    double ulps;
    unsigned at;
};

void look(const function &f, unsigned u, worst *w) {
    const double e = ulps(f.ours(bits(u)), f.exact((double)bits(u)));
    if (!(e <= w->ulps)) *w = {e, u};
}

double gauss(double x) { return std::exp(-0.5 * x * x); }
double cdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
double density(double x) { return gauss(x) * 0.39894228040143267794; }
float our_cdf(float x) {
    float d;
    return rlhf__normal_cdf(x, &d);
}
float our_density(float x) {
    float d;
    rlhf__normal_cdf(x, &d);
    return d;
}
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double sigmoid_rest(double x) { return 1.0 / (1.0 + std::exp(x)); }
float our_sigmoid(float x) {
    float rest;
    return rlhf__sigmoidf(x, &rest);
}
float our_sigmoid_rest(float x) {
    float rest;
    rlhf__sigmoidf(x, &rest);
    return rest;
}

// The boundaries: 0, ends of a case of the function, and points where its result leaves the range
// of f32.
const function functions[] = {
    {"exp", rlhf__expf, std::exp, 1.1, {88.722839f, 89.0f, -87.336545f, -103.97208f, -104.0f}},
    {"exp2", rlhf__exp2f, std::exp2, 1.1, {128.0f, -126.0f, -149.0f, -150.0f, 0.5f}},
    {"log", rlhf__logf, std::log, 1.0, {1.0f, 0.66666667f, 1.3333333f, 0x1p-126f, 0x1p-149f}},
    {"tanh", rlhf__tanhf, std::tanh, 1.5, {0.6f, -0.6f, 9.01f, -9.01f}},
    {"erf", rlhf__erff, std::erf, 1.6, {0.92f, -0.92f, 3.92f, 11.0f, 15.0f}},
    {"cdf", our_cdf, cdf, 8.0, {-13.0f, 5.4f, -15.0f, -15.6f}},
    {"density", our_density, density, 4.0, {-13.0f, 13.0f, 15.0f}},
    {"sigmoid", our_sigmoid, sigmoid, 3.0, {-87.4f, -88.8f, -103.97f, 16.6f}},
    {"its rest", our_sigmoid_rest, sigmoid_rest, 3.0, {87.4f, 88.8f, 103.97f, -16.6f}},
};

// EVERY=1 in the environment: all 2^32 floats (minutes).
void close_to_libm(void **) {
    const char *every = getenv("EVERY");
    const unsigned step = every ? (unsigned)atoi(every) : 4099;
    for (const function &f : functions) {
        worst w = {0.0, 0};
        for (uint64_t u = 0; u < 1ull << 32; u += step)
            look(f, (unsigned)u, &w);
        for (float edge : f.edges)
            for (int i = -20000; i <= 20000; i++)
                look(f, __float_as_uint(edge) + (unsigned)i, &w);
        printf("  %s: %.3f ulp at %.9g\n", f.name, w.ulps, (double)bits(w.at));
        if (!(w.ulps <= f.bound))
            fail_msg("%s(%.9g) is %.9g, %.3f ulp from %.17g; allowed are %.1f", f.name,
                     (double)bits(w.at), (double)f.ours(bits(w.at)), w.ulps,
                     f.exact((double)bits(w.at)), f.bound);
    }
}

void ends_of_the_range(void **) {
    const float inf = INFINITY, nan = NAN;
    assert_true(rlhf__expf(-inf) == 0.0f && rlhf__expf(inf) == inf && rlhf__expf(0.0f) == 1.0f);
    assert_true(rlhf__exp2f(-inf) == 0.0f && rlhf__exp2f(inf) == inf && rlhf__exp2f(3.0f) == 8.0f);
    assert_true(rlhf__logf(0.0f) == -inf && rlhf__logf(-0.0f) == -inf && rlhf__logf(inf) == inf);
    assert_true(rlhf__logf(1.0f) == 0.0f);
    assert_true(rlhf__tanhf(inf) == 1.0f && rlhf__tanhf(-inf) == -1.0f);
    assert_true(rlhf__erff(inf) == 1.0f && rlhf__erff(-inf) == -1.0f);
    assert_true(our_cdf(inf) == 1.0f && our_cdf(-inf) == 0.0f && our_cdf(0.0f) == 0.5f);
    assert_true(std::signbit(rlhf__tanhf(-0.0f)) && std::signbit(rlhf__erff(-0.0f)));
    for (const function &f : functions)
        assert_true(std::isnan(f.ours(nan)) && std::isnan(f.ours(-nan)));
    assert_true(std::isnan(rlhf__logf(-1e-45f)) && std::isnan(rlhf__logf(-inf)));
}

// As its argument grows, exp decreases at most by a rounding error. For negative arguments it never
// exceeds 1; the softmax relies on this for its largest weight.
void exp_grows(void **) {
    float last = 0.0f;
    for (unsigned u = __float_as_uint(-2.0f); u > __float_as_uint(-0.0f); u -= 17) {
        const float e = rlhf__expf(bits(u));
        assert_true(e <= 1.0f);
        assert_true(e >= last * (1.0f - 0x1p-23f));
        last = e;
    }
}

} // namespace

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(close_to_libm),
                                       cmocka_unit_test(ends_of_the_range),
                                       cmocka_unit_test(exp_grows)};
    return cmocka_run_group_tests_name("cuda: mathf", tests, NULL, NULL);
}
