// bf16_store.h: how the tiles of bf16 GEMMs store their sums to C. Hot sources include this file.
#ifndef RLHF_CPU_PRODUCT_BF16_STORE_H
#define RLHF_CPU_PRODUCT_BF16_STORE_H

#include "bf16.h"
#include "machine/vec.h"

#define RLHF__BF16_WIDTH ((size_t)RLHF__BF16_NC)

// If `whole` is set, the vector is completely inside C. `whole` is a constant after inlining.
static inline __attribute__((always_inline)) void
bf16_store(const struct rlhf__panel *p, size_t row, size_t col, vf v, const int whole) {
    const size_t left = p->columns > col ? p->columns - col : 0;
    const size_t n = whole || left > VF_LANES ? VF_LANES : left, at = row * p->ldc + col;
    if (n == 0) return;
    if (p->bias) v = vf_add(v, whole ? vf_load(p->bias + col) : vf_load_n(p->bias + col, n));
    if (p->c_bf16) {
        uint16_t *c = (uint16_t *)p->c + at;
        if (p->addend) v = vf_add(vf_load(p->addend + row * RLHF__BF16_WIDTH + col), v);
        if (whole)
            vf_store_bf16(c, v);
        else
            vf_store_bf16_n(c, v, n);
        return;
    }
    float *c = (float *)p->c + at;
    const float *from = p->from ? p->from + at : c;
    if (p->accumulate) v = vf_add(whole ? vf_load(from) : vf_load_n(from, n), v);
    if (whole)
        vf_store(c, v);
    else
        vf_store_n(c, v, n);
}

// Stores sums[rows][NC] of the last panel, which has fewer columns.
static __attribute__((noinline)) void bf16_store_last(const struct rlhf__panel *p, size_t row,
                                                      size_t rows, const float *sums) {
    for (size_t r = 0; r < rows; r++, sums += RLHF__BF16_WIDTH) {
        bf16_store(p, row + r, 0, vf_load(sums), 0);
        bf16_store(p, row + r, VF_LANES, vf_load(sums + VF_LANES), 0);
    }
}

#endif
