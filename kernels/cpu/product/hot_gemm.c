// hot_gemm.c: f32 GEMMs in tiles of up to MR rows by two vectors. hot_gemm_pack.c packs the
// operands. For bf16, see hot_bf16_tile.c and hot_bf16_pack.c.
#include "gemm_store.h"
#include "gemm_tile.h"
#include "machine/hot.h"
#include "machine/vec.h"

#define INLINE static inline __attribute__((always_inline))

#define LINE 64 // bytes of a cache line

// The partial sums that this panel continues.
INLINE vp so_far(const struct rlhf__panel *p, size_t row, size_t col) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    if (left == 0) return vp_zero();
    return vp_load_n((const float *)p->c + row * p->ldc + col, left < VP_LANES ? left : VP_LANES);
}

// Prefetch the rows of C that the tile uses later. If the tile has just read its own rows (`pairs`
// with `goes_on`), prefetch those of the next tile below.
INLINE void fetch_c(const struct rlhf__panel *p, size_t row, const size_t rows, const int pairs) {
    const size_t first = pairs && p->goes_on ? row + MR : row;
    const size_t end = first + rows < p->m ? first + rows : p->m;
    for (size_t r = first; r < end; r++) {
        const float *c = (const float *)p->c + r * p->ldc;
        __builtin_prefetch(c, 1, 3);
        __builtin_prefetch(c + VP_LANES, 1, 3);
        if (!p->from) continue;
        __builtin_prefetch(p->from + r * p->ldc, 0, 3);
        __builtin_prefetch(p->from + r * p->ldc + VP_LANES, 0, 3);
    }
}

// Prefetch the next panel into the L2 cache. Every tile of this panel fetches a part of it.
struct ahead {
    const char *at;
    size_t step; // bytes per step of k
};

// Stops the compiler from moving the sums across a change of the flush mode.
INLINE void pin(vp c0[MR], vp c1[MR], const size_t rows) {
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        VP_PIN(c0[r]);
        VP_PIN(c1[r]);
    }
}

// Computes one step of k.
INLINE void one_step(const float *a, const float *b, vp c0[MR], vp c1[MR], const size_t rows,
                     const size_t a_row) {
    const vp b0 = vp_load(b), b1 = vp_load(b + VP_LANES);
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        const vp x = vp_set1(a[r * a_row]);
        c0[r] = vp_fma(x, b0, c0[r]);
        c1[r] = vp_fma(x, b1, c1[r]);
    }
}

// some_steps computes steps_of(packed) steps of k. Each iteration of the loop over k calls it once.
#ifdef VP_FMA_LANE_TO
// A multiplication can use a single lane of a vector, so one load of A is enough for several steps.
INLINE size_t steps_of(const int packed) {
    (void)packed;
    return VP_LANES;
}

INLINE void some_steps(const float *a, const float *b, vp c0[MR], vp c1[MR], const size_t rows,
                       const int packed, const size_t a_row) {
    const size_t loads = packed ? MR : rows;
    vp x[MR];
#pragma GCC unroll 12
    for (size_t i = 0; i < loads; i++)
        x[i] = vp_load(a + i * (packed ? VP_LANES : a_row));
#pragma GCC unroll 4
    for (size_t s = 0; s < VP_LANES; s++, b += NC) {
        const vp b0 = vp_load(b), b1 = vp_load(b + VP_LANES);
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            const size_t at = packed ? s * MR + r : r * VP_LANES + s;
            vp_fma_lane_to(&c0[r], x[at / VP_LANES], at % VP_LANES, b0);
            vp_fma_lane_to(&c1[r], x[at / VP_LANES], at % VP_LANES, b1);
        }
    }
}
#elif defined VP_FMA_TO
// With packed A, an iteration computes four steps, because this needs fewer instructions than four
// iterations of one step. If A is in rows, the address of each row needs a register, so an
// iteration computes only one step.
INLINE size_t steps_of(const int packed) { return packed ? 4 : 1; }

INLINE void some_steps(const float *a, const float *b, vp c0[MR], vp c1[MR], const size_t rows,
                       const int packed, const size_t a_row) {
    if (!packed) {
        one_step(a, b, c0, c1, rows, a_row);
        return;
    }
#pragma GCC unroll 4
    for (size_t s = 0; s < steps_of(1); s++, a += MR, b += NC) {
        const vp b0 = vp_load(b), b1 = vp_load(b + VP_LANES);
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            const vp x = vp_set1(a[r]);
            vp_fma_to(&c0[r], x, b0);
            vp_fma_to(&c1[r], x, b1);
        }
    }
}
#else
INLINE size_t steps_of(const int packed) {
    (void)packed;
    return 1;
}

INLINE void some_steps(const float *a, const float *b, vp c0[MR], vp c1[MR], const size_t rows,
                       const int packed, const size_t a_row) {
    (void)packed;
    one_step(a, b, c0, c1, rows, a_row);
}
#endif

// c0 and c1 += the sums of the earlier chains or, if `sum` is NULL, the values of C that this panel
// continues.
INLINE void add_earlier(const struct rlhf__panel *p, size_t row, vp c0[MR], vp c1[MR],
                        const size_t rows, const float *sum) {
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        c0[r] = vp_add(sum ? vp_load(sum + r * NC) : so_far(p, row + r, 0), c0[r]);
        c1[r] =
            vp_add(sum ? vp_load(sum + r * NC + VP_LANES) : so_far(p, row + r, VP_LANES), c1[r]);
    }
}

// Moves c0 and c1 to sums[rows][NC].
INLINE void put_aside(float *sums, vp c0[MR], vp c1[MR], const size_t rows) {
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        vp_store(sums + r * NC, c0[r]);
        vp_store(sums + r * NC + VP_LANES, c1[r]);
        c0[r] = c1[r] = vp_zero();
    }
}

// Computes rows `row` .. `row` + rows - 1. `rows`, `packed` and `pairs` are constants after
// inlining.
//
// If `pairs` is set, the operands are bf16 numbers that were widened to f32 and are stored in the
// order of pairs (matmul.h). The loop is the same as in f32, but the chain starts at C (goes_on),
// and denormals are flushed.
INLINE void tile(const struct rlhf__panel *p, size_t row, const size_t rows, const int packed,
                 const int pairs, struct ahead *next) {
    vp c0[MR], c1[MR];
    float sum[MR * 2 * VP_LANES] __attribute__((aligned(64))); // sums of the completed chains
    const size_t a_row = packed ? 1 : p->a_stride, a_step = packed ? MR : 1;
    const size_t a_at = packed ? row / MR * MR * p->k + row % MR : row * p->a_stride;
    const size_t chain = p->chain ? p->chain : p->k, steps = steps_of(packed);
    const size_t lines = (steps * NC * sizeof(float) + LINE - 1) / LINE; // of B, for `steps` steps
    const float *a = (const float *)p->a + a_at;
    const float *b = (const float *)(const void *)p->b;
    const char *fetch = next->at;
    __asm__("" : "=m"(sum)); // GCC 12 does not notice that sum was written
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        c0[r] = pairs && p->goes_on ? so_far(p, row + r, 0) : vp_zero();
        c1[r] = pairs && p->goes_on ? so_far(p, row + r, VP_LANES) : vp_zero();
    }
    fetch_c(p, row, rows, pairs);
    const unsigned mode = pairs ? vp_flush_on() : 0;
    if (pairs) pin(c0, c1, rows);
    for (size_t k = 0, left = p->k; left; left -= k) {
        k = left < chain ? left : chain;
        size_t i = 0;
        for (; i + steps <= k; i += steps) {
#pragma GCC unroll 8
            for (size_t j = 0; j < lines; j++)
                __builtin_prefetch(fetch + j * LINE, 0, 2);
            some_steps(a, b, c0, c1, rows, packed, a_row);
            a += steps * a_step;
            b += steps * NC;
            fetch += steps * next->step;
        }
#pragma GCC unroll 1
        for (; i < k; i++, a += a_step, b += NC)
            one_step(a, b, c0, c1, rows, a_row);
        if (k == p->k && (pairs || !p->goes_on)) break;
        if (left < p->k)
            add_earlier(p, row, c0, c1, rows, sum);
        else if (p->goes_on)
            add_earlier(p, row, c0, c1, rows, NULL);
        if (left > k) put_aside(sum, c0, c1, rows);
    }
    next->at = fetch;
    if (pairs) {
        pin(c0, c1, rows);
        vp_flush_off(mode);
    }
    if (p->columns == NC) {
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            gemm_store(p, row + r, 0, c0[r], 1);
            gemm_store(p, row + r, VP_LANES, c1[r], 1);
        }
        return;
    }
    put_aside(sum, c0, c1, rows);
    gemm_store_last(p, row, rows, sum);
}

// Each form of a tile is a separate function. In one function with all forms, GCC 12 would keep the
// sums of only some of them in registers.
#define FORM(n, packed, pairs)                                                                     \
    static __attribute__((noinline)) void tile_##n##_##packed##_##pairs(                           \
        const struct rlhf__panel *p, size_t row, struct ahead *next) {                             \
        tile(p, row, n, packed, pairs, next);                                                      \
    }
#define FORMS(n)                                                                                   \
    FORM(n, 0, 0)                                                                                  \
    FORM(n, 0, 1)                                                                                  \
    FORM(n, 1, 0)                                                                                  \
    FORM(n, 1, 1)
FORMS(1)
FORMS(2)
FORMS(3)
FORMS(4)
FORMS(5)
FORMS(6)
#if MR >= 8
FORMS(7)
FORMS(8)
#endif
#if MR == 12
FORMS(9)
FORMS(10)
FORMS(11)
FORMS(12)
#endif

// Computes at most MR rows.
INLINE void some_rows(const struct rlhf__panel *p, size_t row, size_t rows, const int packed,
                      const int pairs, struct ahead *next) {
#define ROWS(n)                                                                                    \
    case n:                                                                                        \
        if (packed)                                                                                \
            pairs ? tile_##n##_1_1(p, row, next) : tile_##n##_1_0(p, row, next);                   \
        else                                                                                       \
            pairs ? tile_##n##_0_1(p, row, next) : tile_##n##_0_0(p, row, next);                   \
        break;
    switch (rows) {
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
#if MR >= 8
        ROWS(7)
        ROWS(8)
#endif
#if MR == 12
        ROWS(9)
        ROWS(10)
        ROWS(11)
        ROWS(12)
#endif
    default:
        break;
    }
}

INLINE void all_rows(const struct rlhf__panel *p, const int packed, const int pairs) {
    const size_t tiles = (p->m + MR - 1) / MR;
    struct ahead next = {(const char *)(p->b + p->b_next), (NC * 4 + tiles - 1) / tiles};
    size_t row = 0;
    for (; row + MR <= p->m; row += MR)
        some_rows(p, row, MR, packed, pairs, &next);
    some_rows(p, row, p->m - row, packed, pairs, &next);
}

void RLHF__HOT(gemm_panel)(const struct rlhf__panel *p) {
    if (p->pairs)
        p->a_packed ? all_rows(p, 1, 1) : all_rows(p, 0, 1);
    else
        p->a_packed ? all_rows(p, 1, 0) : all_rows(p, 0, 0);
}
