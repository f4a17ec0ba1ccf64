// test_draw.c: the random numbers of new parameters follow their definition, to the bit, for any
// number of threads and from any index.
#include "support/scratch.h"

#include "model/draw.h"

#include <rlhf/exact.h>
#include <rlhf/rng.h>

enum { N = 400001 };

// The definition: Box-Muller with the functions that are correctly rounded.
static void define(const struct rlhf__draw *d, float *x, uint64_t from, size_t n) {
    rlhf_rng r = {d->seed, d->stream, from / 2};
    for (size_t i = 0; i < n; i += 2, r.counter++) {
        uint32_t w[4];
        rlhf_rng_block(&r, w);
        const double a = rlhf_rng_f64(w[0], w[1]), b = rlhf_rng_f64(w[2], w[3]);
        const double radius = sqrt(-2 * rlhf_log(1 - a)), angle = 6.283185307179586 * b;
        x[i] = (float)(d->uniform ? d->bound * (2 * a - 1) : radius * rlhf_cos(angle));
        if (i + 1 < n)
            x[i + 1] = (float)(d->uniform ? d->bound * (2 * b - 1) : radius * rlhf_sin(angle));
    }
}

static void check(struct rlhf__draw d, float *x, float *want) {
    define(&d, want, 0, N);
    for (d.threads = 1; d.threads <= 3; d.threads++) {
        memset(x, 0, N * sizeof *x);
        rlhf__draw(&d, x, 0, N);
        assert_memory_equal(x, want, N * sizeof *x);
    }
    memset(x, 0, N * sizeof *x);
    for (size_t at = 0, n = 2; at < N; at += n, n = 2 * n + 2) { // in parts
        if (n > N - at) n = N - at;
        rlhf__draw(&d, x + at, at, n);
    }
    assert_memory_equal(x, want, N * sizeof *x);
}

static void numbers(void **state) {
    (void)state;
    float *x = malloc(N * sizeof *x), *want = malloc(N * sizeof *want);
    assert_true(x && want);
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct rlhf__draw d = {.seed = seed, .stream = rlhf_rng_stream("init:wte.weight")};
        check(d, x, want);
        d.uniform = 1;
        d.bound = 0.05;
        check(d, x, want);
    }
    free(x);
    free(want);
}

// Elements after the last number are not changed.
static void ends(void **state) {
    (void)state;
    const struct rlhf__draw d = {.seed = 3, .stream = 4, .threads = 1};
    for (size_t n = 0; n < 300; n++) {
        float x[301];
        for (size_t i = 0; i < 301; i++)
            x[i] = 7;
        rlhf__draw(&d, x, 0, n);
        assert_true(x[n] == 7);
        for (size_t i = 0; i < n; i++)
            assert_true(x[i] != 7);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(ends),
    };
    return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}
