// hot_bf16_tile.c: the GEMM loops of bf16.h. A tile has up to 12 rows and two vectors of
// columns. Its 24 sums are in registers. A step needs two loads of B and 12 broadcasts of A for 24
// vector dot products.
//
// The code is unrolled for every number of rows, so this file takes long to compile. CMakeLists.txt
// builds four objects from it in parallel, and sets three macros for each. RLHF_BF16_PANEL is the
// function's name. RLHF_BF16_PACKED is 1 for packed A. RLHF_BF16_ONE_TILE is 1 for panels of at
// most one tile.
#include "bf16_store.h"
#include "machine/vec.h"

#define NC RLHF__BF16_WIDTH
#define MR RLHF__BF16_MR

#define INLINE static inline __attribute__((always_inline))

INLINE __m512bh pair_at(const char *p) {
    int32_t w;
    memcpy(&w, p, sizeof w);
    return (__m512bh)_mm512_set1_epi32(w);
}

// The last element of an odd k, as a pair. The second half of the pair is 0; its memory is not
// read.
INLINE __m512bh half_at(const char *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return (__m512bh)_mm512_set1_epi32(h);
}

// The initial value of the chain.
INLINE vf start(const struct rlhf__panel *p, size_t row, size_t col) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    if (!p->goes_on || left == 0) return vf_zero();
    return vf_load_n((const float *)p->c + row * p->ldc + col, left < VF_LANES ? left : VF_LANES);
}

// Prefetch the rows of C that are used next. Without `goes_on`, the tile stores its own rows later.
// With `goes_on`, it has just read its own rows, so those of the next tile below are prefetched.
INLINE void fetch_c(const struct rlhf__panel *p, size_t row, const size_t rows) {
    const size_t size = p->c_bf16 ? 2 : 4, first = p->goes_on ? row + MR : row;
    const size_t end = first + rows < p->m ? first + rows : p->m;
    for (size_t r = first; r < end; r++) {
        const char *c = (const char *)p->c + r * p->ldc * size;
        __builtin_prefetch(c, 1, 3);
        __builtin_prefetch(c + 64, 1, 3);
        if (!p->from) continue;
        __builtin_prefetch(p->from + r * p->ldc, 0, 3);
        __builtin_prefetch(p->from + r * p->ldc + VF_LANES, 0, 3);
    }
}

// Prefetch the next panel into the L2 cache while this panel is multiplied. Each of the first
// FETCH_TILES tiles prefetches a part of that panel, at a rate that memory can sustain: one line
// per pair of k, or two lines if there is only one tile. Decoding 32 rows is 12 to 15 % faster than
// if the first tile prefetched the whole panel.
#define FETCH_TILES 4

struct ahead {
    const char *at;
    size_t step; // bytes per pair
};

// Compute rows `row` .. `row` + rows - 1. `rows`, `packed` and `lines` are constants after
// inlining.
INLINE void tile(const struct rlhf__panel *p, size_t row, const size_t rows, const int packed,
                 struct ahead *next, const int lines) {
    vf c0[MR], c1[MR];
    const size_t pairs = p->k / 2, odd = p->k % 2;
    const size_t a_row = packed ? 4 : p->a_stride * 2, a_step = packed ? MR * 4 : 4;
    const char *a = (const char *)p->a + (packed ? row * (pairs + odd) * 4 : row * a_row);
    const uint32_t *b = p->b;
    const char *fetch = next->at;
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        c0[r] = start(p, row + r, 0);
        c1[r] = start(p, row + r, VF_LANES);
    }
    fetch_c(p, row, rows);
    for (size_t i = 0; i < pairs; i++, a += a_step, b += NC, fetch += next->step) {
        const __m512bh b0 = (__m512bh)_mm512_loadu_si512(b);
        const __m512bh b1 = (__m512bh)_mm512_loadu_si512(b + VF_LANES);
        if (lines) _mm_prefetch(fetch, _MM_HINT_T1);
        if (lines == 2) _mm_prefetch(fetch + 64, _MM_HINT_T1);
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            const __m512bh x = pair_at(a + r * a_row);
            c0[r] = _mm512_dpbf16_ps(c0[r], x, b0);
            c1[r] = _mm512_dpbf16_ps(c1[r], x, b1);
        }
    }
    next->at = fetch;
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
    if (p->columns == NC) {
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            bf16_store(p, row + r, 0, c0[r], 1);
            bf16_store(p, row + r, VF_LANES, c1[r], 1);
        }
        return;
    }
    float sums[MR * 2 * VF_LANES] __attribute__((aligned(64)));
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        vf_store(sums + r * NC, c0[r]);
        vf_store(sums + r * NC + VF_LANES, c1[r]);
    }
    bf16_store_last(p, row, rows, sums);
}

INLINE void rest(const struct rlhf__panel *p, size_t row, size_t rows, const int packed,
                 struct ahead *next, const int lines) {
#define REST(n)                                                                                    \
    case n:                                                                                        \
        tile(p, row, n, packed, next, lines);                                                      \
        break;
    switch (rows) {
        REST(1)
        REST(2)
        REST(3)
        REST(4)
        REST(5)
        REST(6)
        REST(7)
        REST(8)
        REST(9)
        REST(10)
        REST(11)
        REST(12)
    default:
        break;
    }
}

#if RLHF_BF16_ONE_TILE
void RLHF_BF16_PANEL(const struct rlhf__panel *p) {
    struct ahead next = {(const char *)(p->b + p->b_next), NC * 4};
    rest(p, 0, p->m, RLHF_BF16_PACKED, &next, 2);
}
#else
void RLHF_BF16_PANEL(const struct rlhf__panel *p) {
    const size_t tiles = (p->m + MR - 1) / MR, fetching = tiles < FETCH_TILES ? tiles : FETCH_TILES;
    struct ahead next = {(const char *)(p->b + p->b_next), (NC * 4 + fetching - 1) / fetching};
    size_t row = 0;
    for (; row + MR <= p->m && row < FETCH_TILES * MR; row += MR)
        tile(p, row, MR, RLHF_BF16_PACKED, &next, 1);
    for (; row + MR <= p->m; row += MR)
        tile(p, row, MR, RLHF_BF16_PACKED, &next, 0);
    if (tiles > FETCH_TILES) next.step = 0;
    rest(p, row, p->m - row, RLHF_BF16_PACKED, &next, 1);
}
#endif
