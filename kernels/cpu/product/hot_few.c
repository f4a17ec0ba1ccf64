// hot_few.c: f32 GEMMs of few rows with a quantised panel (unquantise.h), as in decoding. The
// elements go from the blocks to the sums without a panel in memory, because the time of few rows
// is that of reading and unpacking the weight. The order of every sum is that of hot_gemm.c, so the
// bits are the same.
#include "machine/hot.h"
#include "machine/vec.h"

#include "gemm_store.h"
#include "unquantise.h"

#define INLINE static inline __attribute__((always_inline))

#define FEW RLHF__GEMM_FEW

// *c += x * b, in one register.
INLINE void add_product(vp *c, vp x, vp b) {
#ifdef VP_FMA_TO
    vp_fma_to(c, x, b);
#else
    *c = vp_fma(x, b, *c);
#endif
}

// Stops the compiler from moving the sums across a change of the flush mode.
INLINE void pin(vp c[FEW][2], const size_t rows) {
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++) {
        VP_PIN(c[r][0]);
        VP_PIN(c[r][1]);
    }
}

// sum += c, or sum = c at first; c = 0.
INLINE void end_chain(vp sum[FEW][2], vp c[FEW][2], const size_t rows, int first) {
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
        for (size_t h = 0; h < 2; h++) {
            sum[r][h] = first ? c[r][h] : vp_add(sum[r][h], c[r][h]);
            c[r][h] = vp_zero();
        }
}

// The steps i .. i + 7 of the panel, which are the steps 0 .. 7 of a.
INLINE void eight_steps(vp c[FEW][2], const float *a, size_t stride, const uint8_t *unit, size_t i,
                        const struct unquantise_scales *s, const size_t rows, const int format,
                        const int pairs) {
#pragma GCC unroll 2
    for (unsigned from = 0; from < 8; from += 4) {
        vp w[2][4];
        unquantise_four(w[0], unit, i, from, 0, s, format);
        unquantise_four(w[1], unit, i, from, 1, s, format);
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            const vp b0 = pairs ? rounded(w[0][j ^ 1]) : w[0][j];
            const vp b1 = pairs ? rounded(w[1][j ^ 1]) : w[1][j];
#pragma GCC unroll 4
            for (size_t r = 0; r < rows; r++) {
                const vp x = vp_set1(a[r * stride + from + j]);
                add_product(&c[r][0], x, b0);
                add_product(&c[r][1], x, b1);
            }
        }
    }
}

// `rows`, `format` and `pairs` are constants after inlining.
INLINE void few(const struct rlhf__panel *p, const uint8_t *panel, size_t k0, const size_t rows,
                const int format, const int pairs) {
    const size_t elements = (size_t)rlhf_format_elements(format), run = unquantise_run(format);
    const size_t unit_bytes = NC * (size_t)rlhf_format_bytes(format), end = k0 + p->k;
    const size_t chain = p->chain ? p->chain : p->k; // a multiple of the run, or all steps
    const float *a = p->a;
    vp c[FEW][2], sum[FEW][2];
    float sums[FEW * 2 * VP_LANES] __attribute__((aligned(64)));
    for (size_t r = 0; r < rows; r++)
        c[r][0] = c[r][1] = sum[r][0] = sum[r][1] = vp_zero();
    const unsigned mode = pairs ? vp_flush_on() : 0;
    if (pairs) pin(c, rows);
    for (size_t i = k0; i < end; i += run) {
        const uint8_t *unit = panel + i / elements * unit_bytes;
        struct unquantise_scales s;
        if (i > k0 && (i - k0) % chain == 0) end_chain(sum, c, rows, i - k0 == chain);
        unquantise_fetch(panel, i, format);
        unquantise_scales_at(&s, unit, i % elements, format);
        for (size_t at = 0; at < run; at += 8, a += 8)
            eight_steps(c, a, p->a_stride, unit, i % elements + at, &s, rows, format, pairs);
    }
    if (pairs) {
        pin(c, rows);
        vp_flush_off(mode);
    }
    if (p->k > chain) end_chain(sum, c, rows, 0);
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
        for (size_t h = 0; h < 2; h++)
            vp_store(sums + (r * 2 + h) * VP_LANES, p->k > chain ? sum[r][h] : c[r][h]);
    if (p->columns < NC) {
        gemm_store_last(p, 0, rows, sums);
        return;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t h = 0; h < 2; h++)
            gemm_store(p, r, h * VP_LANES, vp_load(sums + (r * 2 + h) * VP_LANES), 1);
}

// Each form is a separate function, as in hot_gemm.c.
#define FORM(rows, format, pairs)                                                                  \
    static __attribute__((noinline)) void few_##rows##_##format##_##pairs(                         \
        const struct rlhf__panel *p, const uint8_t *panel, size_t k0) {                            \
        few(p, panel, k0, rows, RLHF_FORMAT_##format, pairs);                                      \
    }
#define FORMS(format, pairs)                                                                       \
    FORM(1, format, pairs)                                                                         \
    FORM(2, format, pairs)                                                                         \
    FORM(3, format, pairs)                                                                         \
    FORM(4, format, pairs)
#define FORMATS(pairs)                                                                             \
    FORMS(Q8_0, pairs)                                                                             \
    FORMS(Q4_0, pairs)                                                                             \
    FORMS(Q4_1, pairs)                                                                             \
    FORMS(Q4_K, pairs)                                                                             \
    FORMS(Q6_K, pairs)                                                                             \
    FORMS(Q5_0, pairs)                                                                             \
    FORMS(Q5_1, pairs)
FORMATS(0)
FORMATS(1)

typedef void few_fn(const struct rlhf__panel *p, const uint8_t *panel, size_t k0);

#define OF_ROWS(format, pairs)                                                                     \
    {                                                                                              \
        few_1_##format##_##pairs, few_2_##format##_##pairs, few_3_##format##_##pairs,              \
            few_4_##format##_##pairs                                                               \
    }
#define OF_FORMATS(pairs)                                                                          \
    {                                                                                              \
        OF_ROWS(Q8_0, pairs), OF_ROWS(Q4_0, pairs), OF_ROWS(Q4_1, pairs), OF_ROWS(Q4_K, pairs),    \
            OF_ROWS(Q6_K, pairs), OF_ROWS(Q5_0, pairs), OF_ROWS(Q5_1, pairs)                       \
    }
static few_fn *const forms[2][RLHF_FORMAT_Q5_1][FEW] = {OF_FORMATS(0), OF_FORMATS(1)};

void RLHF__HOT(gemm_few)(const struct rlhf__panel *p, const uint8_t *panel, int format, size_t k0) {
    forms[p->pairs != 0][format - RLHF_FORMAT_Q8_0][p->m - 1](p, panel, k0);
}
