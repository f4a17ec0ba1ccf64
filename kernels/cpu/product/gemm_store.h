// gemm_store.h: how the tiles of f32 GEMMs store their sums to C. Hot sources include this file
// after vec.h.
#ifndef RLHF_CPU_PRODUCT_GEMM_STORE_H
#define RLHF_CPU_PRODUCT_GEMM_STORE_H

#include "gemm_tile.h"
#include "machine/products_list.h"

// If `whole` is set, the vector is completely inside C. `whole` is a constant after inlining.
static inline __attribute__((always_inline)) void
gemm_store(const struct rlhf__panel *p, size_t row, size_t col, vp v, const int whole) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    const size_t n = whole || left > VP_LANES ? VP_LANES : left, at = row * p->ldc + col;
    float *c = (float *)p->c + at;
    if (n == 0) return;
    if (p->bias) v = vp_add(v, whole ? vp_load(p->bias + col) : vp_load_n(p->bias + col, n));
    if (p->accumulate) {
        const float *from = p->from ? p->from + at : c;
        v = vp_add(whole ? vp_load(from) : vp_load_n(from, n), v);
    }
    if (whole)
        vp_store(c, v);
    else
        vp_store_n(c, v, n);
}

// Stores sums[rows][NC] of the last panel, which has fewer columns.
static __attribute__((noinline)) void gemm_store_last(const struct rlhf__panel *p, size_t row,
                                                      size_t rows, const float *sums) {
    for (size_t r = 0; r < rows; r++, sums += NC) {
        gemm_store(p, row + r, 0, vp_load(sums), 0);
        gemm_store(p, row + r, VP_LANES, vp_load(sums + VP_LANES), 0);
    }
}

#endif
