// hot_bf16_few.c: bf16 GEMMs of few rows with a quantised panel (bf16_unpack.h), like hot_few.c.
// The order of every sum is that of hot_bf16_tile.c, so the bits are the same.
#include "bf16_store.h"
#include "bf16_unpack.h"

#define INLINE static inline __attribute__((always_inline))

#define FEW RLHF__GEMM_FEW

#define STEPS UNPACK_STEPS
#define PAIRS UNPACK_PAIRS

INLINE __m512bh pair_at(const void *p) {
    int32_t w;
    memcpy(&w, p, sizeof w);
    return (__m512bh)_mm512_set1_epi32(w);
}

// `rows` and `format` are constants after inlining.
INLINE void few(const struct rlhf__panel *p, const uint8_t *panel, size_t k0, const size_t rows,
                const int format) {
    const size_t elements = (size_t)rlhf_format_elements(format), run = unquantise_run(format);
    const size_t unit_bytes = NC * (size_t)rlhf_format_bytes(format);
    const size_t stride = p->a_stride;
    const uint16_t *a = p->a;
    vf c[FEW][2];
    for (size_t r = 0; r < rows; r++)
        c[r][0] = c[r][1] = vf_zero();
    for (size_t i = k0; i < k0 + p->k; i += run) {
        const uint8_t *unit = panel + i / elements * unit_bytes;
        struct unpack_scales s;
        unquantise_fetch(panel, i, format);
        unpack_scales_at(&s, unit, i % elements, format);
#pragma GCC unroll 2
        for (size_t at = i % elements; at < i % elements + run; at += STEPS, a += STEPS)
#pragma GCC unroll 2
            for (size_t h = 0; h < 2; h++) {
                __m512i w[PAIRS];
                unpack_words(w, NULL, unit, at, h, &s, format);
#pragma GCC unroll 8
                for (size_t j = 0; j < PAIRS; j++)
#pragma GCC unroll 4
                    for (size_t r = 0; r < rows; r++)
                        c[r][h] = _mm512_dpbf16_ps(c[r][h], (__m512bh)w[j],
                                                   pair_at(a + r * stride + 2 * j));
            }
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
FORMS(Q5_0)
FORMS(Q5_1)

typedef void few_fn(const struct rlhf__panel *p, const uint8_t *panel, size_t k0);

#define OF_ROWS(format)                                                                            \
    { few_1_##format, few_2_##format, few_3_##format, few_4_##format }
static few_fn *const forms[RLHF_FORMAT_Q5_1][FEW] = {OF_ROWS(Q8_0), OF_ROWS(Q4_0), OF_ROWS(Q4_1),
                                                     OF_ROWS(Q4_K), OF_ROWS(Q6_K), OF_ROWS(Q5_0),
                                                     OF_ROWS(Q5_1)};

void rlhf__bf16_few(const struct rlhf__panel *p, const uint8_t *panel, int format, size_t k0) {
    forms[format - RLHF_FORMAT_Q8_0][p->m - 1](p, panel, k0);
}
