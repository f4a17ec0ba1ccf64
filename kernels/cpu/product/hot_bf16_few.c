// hot_bf16_few.c: bf16 GEMMs of few rows with a quantised panel (unquantise.h), like hot_few.c. The
// order of every sum is that of hot_bf16_tile.c, so the bits are the same.
#include "bf16_store.h"
#include "bf16_words.h"

#define INLINE static inline __attribute__((always_inline))

#define FEW RLHF__GEMM_FEW

INLINE __m512bh pair_at(const uint16_t *p) {
    int32_t w;
    memcpy(&w, p, sizeof w);
    return (__m512bh)_mm512_set1_epi32(w);
}

// The steps i .. i + 7 of the panel, which are the steps 0 .. 7 of a.
INLINE void eight_steps(vf c[FEW][2], const uint16_t *a, size_t stride, const uint8_t *unit,
                        size_t i, const struct unquantise_scales *s, const size_t rows,
                        const int format) {
#pragma GCC unroll 2
    for (unsigned from = 0; from < 8; from += 4) {
        vp w[2][4];
        unquantise_four(w[0], unit, i, from, 0, s, format);
        unquantise_four(w[1], unit, i, from, 1, s, format);
#pragma GCC unroll 2
        for (size_t j = 0; j < 4; j += 2) {
            const __m512bh b0 = (__m512bh)bf16_words(w[0][j], w[0][j + 1]);
            const __m512bh b1 = (__m512bh)bf16_words(w[1][j], w[1][j + 1]);
#pragma GCC unroll 4
            for (size_t r = 0; r < rows; r++) {
                const __m512bh x = pair_at(a + r * stride + from + j);
                c[r][0] = _mm512_dpbf16_ps(c[r][0], x, b0);
                c[r][1] = _mm512_dpbf16_ps(c[r][1], x, b1);
            }
        }
    }
}

// `rows` and `format` are constants after inlining.
INLINE void few(const struct rlhf__panel *p, const uint8_t *panel, size_t k0, const size_t rows,
                const int format) {
    const size_t elements = (size_t)rlhf_format_elements(format), run = unquantise_run(format);
    const size_t unit_bytes = NC * (size_t)rlhf_format_bytes(format), end = k0 + p->k;
    const uint16_t *a = p->a;
    vf c[FEW][2];
    for (size_t r = 0; r < rows; r++)
        c[r][0] = c[r][1] = vf_zero();
    for (size_t i = k0; i < end; i += run) {
        const uint8_t *unit = panel + i / elements * unit_bytes;
        struct unquantise_scales s;
        for (size_t line = 0; line < run * NC; line += 64) // the unit after this one
            __builtin_prefetch(unit + unit_bytes + line, 0, 2);
        unquantise_scales_at(&s, unit, i % elements, format);
        for (size_t at = 0; at < run; at += 8, a += 8)
            eight_steps(c, a, p->a_stride, unit, i % elements + at, &s, rows, format);
    }
    if (p->columns == NC) {
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            for (size_t h = 0; h < 2; h++)
                bf16_store(p, r, h * VF_LANES, c[r][h], 1);
        return;
    }
    float sums[FEW * 2 * VF_LANES] __attribute__((aligned(64)));
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
        for (size_t h = 0; h < 2; h++)
            vf_store(sums + (r * 2 + h) * VF_LANES, c[r][h]);
    bf16_store_last(p, 0, rows, sums);
}

#define FORM(rows, format)                                                                         \
    static __attribute__((noinline)) void few_##rows##_##format(const struct rlhf__panel *p,       \
                                                                const uint8_t *panel, size_t k0) { \
        few(p, panel, k0, rows, RLHF_FORMAT_##format);                                             \
    }
#define FORMS(format)                                                                              \
    FORM(1, format)                                                                                \
    FORM(2, format)                                                                                \
    FORM(3, format)                                                                                \
    FORM(4, format)
FORMS(Q8_0)
FORMS(Q4_0)
FORMS(Q4_1)
FORMS(Q4_K)
FORMS(Q6_K)

typedef void few_fn(const struct rlhf__panel *p, const uint8_t *panel, size_t k0);

#define OF_ROWS(format)                                                                            \
    { few_1_##format, few_2_##format, few_3_##format, few_4_##format }
static few_fn *const forms[5][FEW] = {OF_ROWS(Q8_0), OF_ROWS(Q4_0), OF_ROWS(Q4_1), OF_ROWS(Q4_K),
                                      OF_ROWS(Q6_K)};

void rlhf__bf16_few(const struct rlhf__panel *p, const uint8_t *panel, int format, size_t k0) {
    forms[format - RLHF_FORMAT_Q8_0][p->m - 1](p, panel, k0);
}
