// hot/gemm.c: f32 products: tiles of up to MR rows by two vectors, and packing. The bf16 twin is in
// bf16_tile.c and bf16_pack.c.
#include "hot.h"
#include "vec.h"

#define NC ((size_t)2 * VF_LANES)

// Two sums a row stay in registers: 24 of 32, or 12 of 16.
#if VF_LANES == 16
#define MR 12
#else
#define MR 6
#endif

#define INLINE static inline __attribute__((always_inline))

void RLHF__HOT(gemm_pack_rows)(uint32_t *dst, const float *src, size_t k, size_t columns,
                               size_t stride) {
    float *to = (float *)(void *)dst;
    const size_t n0 = columns < VF_LANES ? columns : VF_LANES, n1 = columns - n0;
    for (size_t i = 0; i < k; i++, src += stride, to += NC) {
        vf_store(to, vf_load_n(src, n0));
        vf_store(to + VF_LANES, n1 ? vf_load_n(src + VF_LANES, n1) : vf_zero());
    }
}

void RLHF__HOT(gemm_pack_cols)(uint32_t *dst, const float *src, size_t k, size_t columns,
                               size_t stride) {
    enum { STEP = 16 }; // a few lines of dst at a time
    float *to = (float *)(void *)dst;
    for (size_t i0 = 0; i0 < k; i0 += STEP) {
        const size_t i1 = i0 + STEP < k ? i0 + STEP : k;
        for (size_t c = 0; c < NC; c++)
            for (size_t i = i0; i < i1; i++)
                to[i * NC + c] = c < columns ? src[c * stride + i] : 0.0f;
    }
}

void RLHF__HOT(gemm_pack_a)(uint32_t *dst, const float *src, size_t m, size_t k, size_t stride) {
    float *to = (float *)(void *)dst;
    for (size_t i = 0; i < k; i++, src += stride, to += MR)
        for (size_t r = 0; r < m; r += MR)
            for (size_t j = 0; j < MR; j++)
                to[r * k + j] = r + j < m ? src[r + j] : 0.0f;
}

INLINE void store(const struct rlhf__panel *p, size_t row, size_t col, vf v) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    const size_t n = left < VF_LANES ? left : VF_LANES;
    float *c = (float *)p->c + row * p->ldc + col;
    if (n == 0) return;
    if (p->bias) v = vf_add(v, vf_load_n(p->bias + col, n));
    if (p->accumulate) v = vf_add(vf_load_n(p->from ? p->from + row * p->ldc + col : c, n), v);
    vf_store_n(c, v, n);
}

// What the chain starts at.
INLINE vf start(const struct rlhf__panel *p, size_t row, size_t col) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    if (!p->goes_on || left == 0) return vf_zero();
    return vf_load_n((const float *)p->c + row * p->ldc + col, left < VF_LANES ? left : VF_LANES);
}

INLINE void fetch_c(const struct rlhf__panel *p, size_t row) {
    const float *c = (const float *)p->c + row * p->ldc;
    __builtin_prefetch(c, 1, 3);
    __builtin_prefetch(c + VF_LANES, 1, 3);
}

// Rows row .. row + rows - 1; rows, packed and fetch are constants where this is inlined. fetch:
// the next panel is brought to the second-level cache while this one is multiplied.
INLINE void tile(const struct rlhf__panel *p, size_t row, const size_t rows, const int packed,
                 const int fetch) {
    vf c0[MR], c1[MR];
    const size_t a_row = packed ? 1 : p->a_stride, a_step = packed ? MR : 1;
    const size_t a_at = packed ? row / MR * MR * p->k + row % MR : row * p->a_stride;
    const float *a = (const float *)p->a + a_at;
    const float *b = (const float *)(const void *)p->b;
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        c0[r] = start(p, row + r, 0);
        c1[r] = start(p, row + r, VF_LANES);
        fetch_c(p, row + r);
    }
    for (size_t i = 0; i < p->k; i++, a += a_step, b += NC) {
        const vf b0 = vf_load(b), b1 = vf_load(b + VF_LANES);
        if (fetch) {
            __builtin_prefetch(b + p->b_next, 0, 2);
            __builtin_prefetch(b + p->b_next + VF_LANES, 0, 2);
        }
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            const vf x = vf_set1(a[r * a_row]);
            c0[r] = vf_fma(x, b0, c0[r]);
            c1[r] = vf_fma(x, b1, c1[r]);
        }
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        store(p, row + r, 0, c0[r]);
        store(p, row + r, VF_LANES, c1[r]);
    }
}

INLINE void all_rows(const struct rlhf__panel *p, const int packed) {
    size_t row = 0;
    if (p->m >= MR) {
        tile(p, 0, MR, packed, 1);
        row = MR;
    }
    for (; row + MR <= p->m; row += MR)
        tile(p, row, MR, packed, 0);
    if (row + MR / 2 <= p->m) {
        tile(p, row, MR / 2, packed, row == 0);
        row += MR / 2;
    }
    for (; row < p->m; row++)
        tile(p, row, 1, packed, 0);
}

void RLHF__HOT(gemm_panel)(const struct rlhf__panel *p) {
    if (p->a_packed)
        all_rows(p, 1);
    else
        all_rows(p, 0);
}
