// delta_chunk.h: products of small matrices in f32, for hot_delta_bwd.c.
#ifndef RLHF_KERNELS_CPU_STATE_DELTA_CHUNK_H
#define RLHF_KERNELS_CPU_STATE_DELTA_CHUNK_H

#include "delta_layout.h"
#include "delta_vec.h"

#if VP_LANES == 16
enum { MM_ROWS = 8, MM_VECTORS = 2 };
#else
enum { MM_ROWS = 2, MM_VECTORS = 2 };
#endif

// A matrix whose element (i, j) is p[i * row + j * column].
struct mat {
    const float *p;
    size_t row, column;
};

// One tile of mm: MM_ROWS rows and `vectors` vectors of columns.
INLINE void mm_tile(float *out, const float *init, float keep, size_t width, struct mat a,
                    const float *b, size_t inner, const int vectors) {
    vf s[MM_ROWS][MM_VECTORS];
    for (int r = 0; r < MM_ROWS; r++)
        for (int v = 0; v < vectors; v++)
            s[r][v] = init ? vf_mul(vf_set1(keep),
                                    vf_load(init + (size_t)r * width + (size_t)v * VF_LANES))
                           : vf_zero();
    for (size_t i = 0; i < inner; i++, b += width) {
        vf x[MM_VECTORS];
        for (int v = 0; v < vectors; v++)
            x[v] = vf_load(b + (size_t)v * VF_LANES);
        for (int r = 0; r < MM_ROWS; r++) {
            const vf y = vf_set1(a.p[(size_t)r * a.row + i * a.column]);
            for (int v = 0; v < vectors; v++)
                s[r][v] = vf_fma(y, x[v], s[r][v]);
        }
    }
    for (int r = 0; r < MM_ROWS; r++)
        for (int v = 0; v < vectors; v++)
            vf_store(out + (size_t)r * width + (size_t)v * VF_LANES, s[r][v]);
}

// out[rows, width] = keep * init + A[rows, inner] B[inner, width]; init may be out; NULL: zeros.
// rows and width are multiples of 16. An element adds its terms in ascending order, so its bits do
// not depend on the tiles. A tile has many rows, because B is larger than the first-level cache.
static __attribute__((noinline)) void mm(float *out, const float *init, float keep, size_t rows,
                                         size_t width, struct mat a, const float *b, size_t inner) {
    for (size_t r = 0; r < rows; r += MM_ROWS) {
        const struct mat ar = {a.p + r * a.row, a.row, a.column};
        size_t c = 0;
        for (; c + MM_VECTORS * VF_LANES <= width; c += MM_VECTORS * VF_LANES)
            mm_tile(out + r * width + c, init ? init + r * width + c : NULL, keep, width, ar, b + c,
                    inner, MM_VECTORS);
        for (; c < width; c += VF_LANES)
            mm_tile(out + r * width + c, init ? init + r * width + c : NULL, keep, width, ar, b + c,
                    inner, 1);
    }
}

// to[columns, rows] = the transpose of from[rows, columns]; both are multiples of 16.
static __attribute__((noinline)) void turn(float *to, const float *from, size_t rows,
                                           size_t columns) {
    vf r[VF_LANES];
    for (size_t i = 0; i < rows; i += VF_LANES)
        for (size_t j = 0; j < columns; j += VF_LANES) {
            for (size_t l = 0; l < VF_LANES; l++)
                r[l] = vf_load(from + (i + l) * columns + j);
            vf_transpose_n(r, VF_LANES, VF_LANES);
            for (size_t l = 0; l < VF_LANES; l++)
                vf_store(to + (j + l) * rows + i, r[l]);
        }
}

INLINE float dot(const float *a, const float *b, size_t n) {
    vf s[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    for (size_t i = 0; i < n; i += VF_LANES)
        s[i / VF_LANES % 4] = vf_fma(vf_load(a + i), vf_load(b + i), s[i / VF_LANES % 4]);
    return vf_hsum(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3])));
}

#endif
