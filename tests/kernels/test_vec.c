// test_vec.c: tests exp and the rounding to bf16 of machine/vec.h at the edges of their ranges, at
// every instruction-set level of this CPU.
#include "machine/hot.h"
#include "machine/isa.h"
#include "vec_level.h"

#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct level {
    const char *name;
    void (*exp)(float *out, const float *x, size_t n);
    void (*to_bf16)(uint16_t *out, const float *x, size_t n);
};

#define LEVEL(name) {#name, vec_exp_##name, vec_to_bf16_##name},
static const struct level levels[] = {VEC_LEVELS(LEVEL)};
enum { LEVELS = sizeof levels / sizeof *levels };

// Returns true if the CPU has level number i of levels[] and all levels before it.
static int has(size_t i) { return !rlhf__isa_lacks((int)i); }

static float of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

// ---- exp ----

enum { NEAR = 64, SWEEP = 200000 };

// The floats around each edge, and an even sweep over all of the range.
static float *exp_inputs(size_t *n) {
    static const float edges[] = {88.72284f, 88.0f, -86.5f, -87.33655f, -103.97208f, 1.0f,
                                  -1.0f,     89.0f, 127.5f, -127.5f,    0.34657359f, -0.34657359f};
    static const float alone[] = {0.0f,    -0.0f,    1e-45f,   -1e-45f,   1.1754944e-38f,
                                  3.4e38f, -3.4e38f, INFINITY, -INFINITY, NAN};
    const size_t n_edges = sizeof edges / sizeof *edges, n_alone = sizeof alone / sizeof *alone;
    float *x = malloc((n_edges * 2 * NEAR + n_alone + SWEEP) * sizeof *x);
    assert_non_null(x);
    size_t at = 0;
    for (size_t i = 0; i < n_edges; i++)
        for (uint32_t j = 0; j < 2 * NEAR; j++)
            x[at++] = of_bits(bits_of(edges[i]) - NEAR + j);
    for (size_t i = 0; i < n_alone; i++)
        x[at++] = alone[i];
    for (size_t i = 0; i < SWEEP; i++)
        x[at++] = -90.0f + 180.0f * (float)i / SWEEP;
    *n = at;
    return x;
}

// Returns NULL if y is a correct exp(x), otherwise the error.
static const char *wrong_exp(float x, float y) {
    if (isnan(x)) return isnan(y) ? NULL : "not a NaN";
    if (x < -86.5f) return bits_of(y) == 0 ? NULL : "not 0";
    const double want = exp((double)x);
    if (want > 3.4028235677973366e38) return isinf(y) && y > 0 ? NULL : "not infinity";
    return fabs((double)y - want) <= 2.5e-7 * want ? NULL : "too far from the exact value";
}

static void exp_is_right_up_to_the_edges(void **state) {
    (void)state;
    size_t n;
    float *x = exp_inputs(&n), *y = malloc(n * sizeof *y);
    assert_non_null(y);
    int bad = 0;
    for (size_t l = 0; l < LEVELS && has(l); l++) {
        levels[l].exp(y, x, n);
        for (size_t i = 0; i < n; i++) {
            const char *why = wrong_exp(x[i], y[i]);
            if (why && bad++ < 10)
                print_error("%s: exp(%.9g) is %.9g: %s\n", levels[l].name, (double)x[i],
                            (double)y[i], why);
        }
        print_message("%s: exp of %zu numbers\n", levels[l].name, n);
    }
    free(x);
    free(y);
    assert_int_equal(bad, 0);
}

// ---- bf16 ----

// Rounds to the nearest, ties to even. A NaN stays a NaN, and a number below 2^-126 becomes a zero
// of the same sign, as with VCVTNEPS2BF16.
static uint16_t bf16_of(float f) {
    const uint32_t bits = bits_of(f), size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    if (size < 0x00800000u) return (uint16_t)(bits >> 31 << 15);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Tests every bf16 number, its neighboring floats, and the floats around the midpoint to the next
// bf16 number.
static void rounding_is_the_same_at_every_level(void **state) {
    (void)state;
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { EACH = sizeof low / sizeof *low, N = 65536 * EACH };
    float *x = malloc(N * sizeof *x);
    uint16_t *h = malloc(N * sizeof *h);
    assert_non_null(x);
    assert_non_null(h);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t bits = i / EACH << 16 | low[i % EACH];
        memcpy(x + i, &bits, sizeof bits); // keeps a NaN's bits
    }
    int bad = 0;
    for (size_t l = 0; l < LEVELS && has(l); l++) {
        levels[l].to_bf16(h, x, N);
        for (uint32_t i = 0; i < N; i++)
            if (h[i] != bf16_of(x[i]) && bad++ < 10)
                print_error("%s: bf16 of %08x is %04x, not %04x\n", levels[l].name,
                            (unsigned)(i / EACH << 16 | low[i % EACH]), h[i], bf16_of(x[i]));
        print_message("%s: bf16 of %d numbers\n", levels[l].name, N);
    }
    free(x);
    free(h);
    assert_int_equal(bad, 0);
}

#ifdef __x86_64__
// AMX has a separate arithmetic in bf16. If v1 is requested, the level below AMX is used.
static void levels_by_arithmetic(void **state) {
    (void)state;
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AMX, NULL), RLHF__ISA_AMX);
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AMX, ""), RLHF__ISA_AMX);
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AMX, "v1-amx"), RLHF__ISA_AMX);
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AMX, "v1"), RLHF__ISA_AVX512_BF16);
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AVX512, "v1"), RLHF__ISA_AVX512);
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AVX2, "v1"), RLHF__ISA_AVX2);
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AVX2, "v1-amx"), -1);
    assert_int_equal(rlhf__isa_keeping(RLHF__ISA_AMX, "v2"), -1);
}

// A slow level is used only by name.
static void slow_levels(void **state) {
    (void)state;
    assert_false(rlhf__isa_is_slow(rlhf__isa_choose(NULL)));
    assert_false(rlhf__isa_is_slow(rlhf__isa_choose("")));
    if (has(RLHF__ISA_AVX512_BF16))
        assert_int_equal(rlhf__isa_choose("avx512_bf16"), RLHF__ISA_AVX512_BF16);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exp_is_right_up_to_the_edges),
#ifdef __x86_64__
                                       cmocka_unit_test(levels_by_arithmetic),
                                       cmocka_unit_test(slow_levels),
#endif
                                       cmocka_unit_test(rounding_is_the_same_at_every_level)};
    return cmocka_run_group_tests_name("kernels: vec", tests, NULL, NULL);
}
