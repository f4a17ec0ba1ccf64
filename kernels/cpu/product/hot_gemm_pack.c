// hot_gemm_pack.c: packs the operands of f32 GEMMs for the tiles of hot_gemm.c.
#include "gemm_tile.h"
#include "machine/hot.h"
#include "machine/vec.h"

#define INLINE static inline __attribute__((always_inline))

// A non-temporal store. The caches need not read the line first. The packed operand is larger than
// the caches, and with such stores it does not evict other data. p must be aligned to a vector.
INLINE void put(float *p, vp v, const int stream) {
    if (!stream)
        vp_store(p, v);
    else
        vp_stream(p, v);
}

enum { AHEAD_ROWS = 16, AHEAD_COLS = 64 }; // prefetch distances in rows, and in elements of a row

INLINE void pack_rows(float *to, const float *src, size_t k, size_t columns, size_t stride,
                      const int stream) {
    const size_t n0 = columns < VP_LANES ? columns : VP_LANES, n1 = columns - n0;
    for (size_t i = 0; i < k; i++, src += stride, to += NC) {
        __builtin_prefetch(src + AHEAD_ROWS * stride);
        __builtin_prefetch(src + AHEAD_ROWS * stride + n0);
        put(to, vp_load_n(src, n0), stream);
        put(to + VP_LANES, n1 ? vp_load_n(src + VP_LANES, n1) : vp_zero(), stream);
    }
}

void RLHF__HOT(gemm_pack_rows)(uint32_t *dst, const float *src, size_t k, size_t columns,
                               size_t stride, int stream) {
    if (stream)
        pack_rows((float *)(void *)dst, src, k, columns, stride, 1);
    else
        pack_rows((float *)(void *)dst, src, k, columns, stride, 0);
    if (stream) vp_stream_end();
}

// Packs VP_LANES steps of k for VP_LANES columns at a time: reads the rows of src along k and
// transposes them.
INLINE void pack_cols(float *to, const float *src, size_t k, size_t columns, size_t stride,
                      const int stream) {
    for (size_t i = 0; i < k; i += VP_LANES) {
        const size_t n = k - i < VP_LANES ? k - i : VP_LANES;
        for (size_t c = 0; c < NC; c += VP_LANES) {
            vp v[VP_LANES];
            for (size_t j = 0; j < VP_LANES; j++) {
                const float *from = src + (c + j) * stride + i;
                __builtin_prefetch(from + AHEAD_COLS);
                v[j] = c + j >= columns ? vp_zero()
                       : n == VP_LANES  ? vp_load(from)
                                        : vp_load_n(from, n);
            }
            vp_transpose(v);
            for (size_t j = 0; j < n; j++)
                put(to + (i + j) * NC + c, v[j], stream);
        }
    }
}

void RLHF__HOT(gemm_pack_cols)(uint32_t *dst, const float *src, size_t k, size_t columns,
                               size_t stride, int stream) {
    if (stream)
        pack_cols((float *)(void *)dst, src, k, columns, stride, 1);
    else
        pack_cols((float *)(void *)dst, src, k, columns, stride, 0);
    if (stream) vp_stream_end();
}

void RLHF__HOT(gemm_pack_a)(uint32_t *dst, const float *src, size_t m, size_t k, size_t stride) {
    float *to = (float *)(void *)dst;
    const size_t whole = m / MR * MR;
    for (size_t i = 0; i < k; i++, src += stride, to += MR) {
        for (size_t r = 0; r < whole; r += MR)
            memcpy(to + r * k, src + r, MR * sizeof *src);
        for (size_t j = 0; whole < m && j < MR; j++)
            to[whole * k + j] = whole + j < m ? src[whole + j] : 0.0f;
    }
}

#if VP_LANES < MR
void RLHF__HOT(gemm_turn_a)(uint32_t *dst, const float *src, size_t m, size_t k, size_t stride) {
    float *to = (float *)(void *)dst;
    for (size_t r = 0; r < m; r += MR, to += MR * k)
        for (size_t j = 0; j < MR; j++)
            for (size_t i = 0; i < k; i++)
                to[i * MR + j] = r + j < m ? src[(r + j) * stride + i] : 0.0f;
}
#else
void RLHF__HOT(gemm_turn_a)(uint32_t *dst, const float *src, size_t m, size_t k, size_t stride) {
    float *to = (float *)(void *)dst;
    for (size_t r = 0; r < m; r += MR, to += MR * k)
        for (size_t i = 0; i < k; i += VP_LANES) {
            const size_t n = k - i < VP_LANES ? k - i : VP_LANES;
            vp v[VP_LANES];
            for (size_t j = 0; j < VP_LANES; j++) {
                const float *from = src + (r + j) * stride + i;
                v[j] = j >= MR || r + j >= m ? vp_zero()
                       : n == VP_LANES       ? vp_load(from)
                                             : vp_load_n(from, n);
            }
            vp_transpose(v);
            // A store writes a whole vector. Its lanes after the MR-th belong to the next step of
            // k, whose store overwrites them. After the very last step there is no such memory, so
            // its store writes only MR lanes.
            const size_t whole = i + n < k || r + MR < m ? n : n - 1;
            for (size_t j = 0; j < whole; j++)
                vp_store(to + (i + j) * MR, v[j]);
            if (whole < n) vp_store_n(to + (i + whole) * MR, v[whole], MR);
        }
}
#endif

INLINE void turn_b(float *to, const float *from, size_t rows, size_t columns, const size_t swap) {
    for (size_t i = 0; i < rows; i += VP_LANES)
        for (size_t c = 0; c < NC; c += VP_LANES) {
            vp v[VP_LANES];
            for (size_t j = 0; j < VP_LANES; j++)
                v[j] = c + j < columns ? vp_load(from + ((c + j) ^ swap) * NC + i) : vp_zero();
            vp_transpose(v);
            for (size_t j = 0; j < VP_LANES && i + j < rows; j++)
                vp_store(to + ((i + j) ^ swap) * NC + c, v[j]);
        }
}

void RLHF__HOT(gemm_turn_b)(uint32_t *dst, const uint32_t *src, size_t rows, size_t columns,
                            size_t next, int pairs) {
    for (size_t i = 0; i < NC * NC; i += 16)
        __builtin_prefetch(src + next + i, 0, 3);
    const float *from = (const float *)(const void *)src;
    float *to = (float *)(void *)dst;
    if (pairs)
        turn_b(to, from, rows, columns, 1);
    else
        turn_b(to, from, rows, columns, 0);
}
