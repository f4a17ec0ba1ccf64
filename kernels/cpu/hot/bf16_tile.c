// hot/bf16_tile.c: the product loops of bf16.h. A tile is up to 12 rows by two vectors: 24 sums in
// registers, two loads of B and 12 broadcasts of A for 24 vector products.
#include "bf16.h"
#include "vec.h"

#define NC ((size_t)RLHF__BF16_NC)
#define MR RLHF__BF16_MR

#define INLINE static inline __attribute__((always_inline))

INLINE __m512bh pair_at(const char *p) {
    int32_t w;
    memcpy(&w, p, sizeof w);
    return (__m512bh)_mm512_set1_epi32(w);
}

// The last element of an odd k: the pair's second half is 0, and is not read.
INLINE __m512bh half_at(const char *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return (__m512bh)_mm512_set1_epi32(h);
}

INLINE void store(const struct rlhf__panel *p, size_t row, size_t col, vf v) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    const size_t n = left < VF_LANES ? left : VF_LANES, at = row * p->ldc + col;
    if (n == 0) return;
    if (p->bias) v = vf_add(v, vf_load_n(p->bias + col, n));
    if (p->c_bf16) {
        if (p->addend) v = vf_add(vf_load(p->addend + row * NC + col), v);
        vf_store_bf16_n((uint16_t *)p->c + at, v, n);
        return;
    }
    float *c = (float *)p->c + at;
    if (p->accumulate) v = vf_add(vf_load_n(p->from ? p->from + at : c, n), v);
    vf_store_n(c, v, n);
}

// What the chain starts at.
INLINE vf start(const struct rlhf__panel *p, size_t row, size_t col) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    if (!p->goes_on || left == 0) return vf_zero();
    return vf_load_n((const float *)p->c + row * p->ldc + col, left < VF_LANES ? left : VF_LANES);
}

INLINE void fetch_c(const struct rlhf__panel *p, size_t row) {
    const size_t size = p->c_bf16 ? 2 : 4;
    const char *c = (const char *)p->c + row * p->ldc * size;
    __builtin_prefetch(c, 1, 3);
    __builtin_prefetch(c + 64, 1, 3);
}

// Rows row .. row + rows - 1; rows, packed and fetch are constants where this is inlined. fetch:
// the next panel is brought to the second-level cache while this one is multiplied.
INLINE void tile(const struct rlhf__panel *p, size_t row, const size_t rows, const int packed,
                 const int fetch) {
    vf c0[MR], c1[MR];
    const size_t pairs = p->k / 2, odd = p->k % 2;
    const size_t a_row = packed ? 4 : p->a_stride * 2, a_step = packed ? MR * 4 : 4;
    const char *a = (const char *)p->a + (packed ? row * (pairs + odd) * 4 : row * a_row);
    const uint32_t *b = p->b;
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        c0[r] = start(p, row + r, 0);
        c1[r] = start(p, row + r, VF_LANES);
    }
    for (size_t r = 0; r < rows; r++) // the lines of C are there when the sums are
        fetch_c(p, row + r);
    for (size_t i = 0; i < pairs; i++, a += a_step, b += NC) {
        const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
        const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + VF_LANES);
        if (fetch) {
            const char *next = (const char *)(b + p->b_next);
            _mm_prefetch(next, _MM_HINT_T1);
            _mm_prefetch(next + 64, _MM_HINT_T1);
        }
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            const __m512bh x = pair_at(a + r * a_row);
            c0[r] = _mm512_dpbf16_ps(c0[r], x, b0);
            c1[r] = _mm512_dpbf16_ps(c1[r], x, b1);
        }
    }
    if (odd) {
        const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
        const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + VF_LANES);
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            const __m512bh x = half_at(a + r * a_row);
            c0[r] = _mm512_dpbf16_ps(c0[r], x, b0);
            c1[r] = _mm512_dpbf16_ps(c1[r], x, b1);
        }
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        store(p, row + r, 0, c0[r]);
        store(p, row + r, VF_LANES, c1[r]);
    }
}

INLINE void rest(const struct rlhf__panel *p, size_t row, size_t rows, const int packed,
                 const int fetch) {
    switch (rows) {
    case 1:
        tile(p, row, 1, packed, fetch);
        break;
    case 2:
        tile(p, row, 2, packed, fetch);
        break;
    case 3:
        tile(p, row, 3, packed, fetch);
        break;
    case 4:
        tile(p, row, 4, packed, fetch);
        break;
    case 5:
        tile(p, row, 5, packed, fetch);
        break;
    case 6:
        tile(p, row, 6, packed, fetch);
        break;
    case 7:
        tile(p, row, 7, packed, fetch);
        break;
    case 8:
        tile(p, row, 8, packed, fetch);
        break;
    case 9:
        tile(p, row, 9, packed, fetch);
        break;
    case 10:
        tile(p, row, 10, packed, fetch);
        break;
    case 11:
        tile(p, row, 11, packed, fetch);
        break;
    default:
        break;
    }
}

INLINE void all_rows(const struct rlhf__panel *p, const int packed) {
    size_t row = 0;
    if (p->m >= MR) {
        tile(p, 0, MR, packed, 1);
        for (row = MR; row + MR <= p->m; row += MR)
            tile(p, row, MR, packed, 0);
        rest(p, row, p->m - row, packed, 0);
    } else {
        rest(p, 0, p->m, packed, 1);
    }
}

void rlhf__bf16_panel(const struct rlhf__panel *p) {
    if (p->a_packed)
        all_rows(p, 1);
    else
        all_rows(p, 0);
}
