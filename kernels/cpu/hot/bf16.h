// hot/bf16.h: register tiles and packing of bf16 products on AVX512_BF16. Compiled at the AVX-512
// level only; call when rlhf__hot_select chose that level.
//
// Operands are pairs along k: one 32-bit word holds the elements of steps 2i and 2i + 1. B lies in
// panels of RLHF__BF16_NC columns, [pairs][NC] words, zero-filled at the right edge and for odd k.
// Every output is one chain of two-term dot products over ascending pairs, started at 0, whatever
// tile it falls in: a row's bits depend on the row and B alone.
#ifndef RLHF_CPU_HOT_BF16_H
#define RLHF_CPU_HOT_BF16_H

#include <stddef.h>
#include <stdint.h>

#define RLHF__BF16_NC 32 // columns of a panel
#define RLHF__BF16_MR 12 // rows of a tile

// Rows of C by one panel. Strides in elements.
struct rlhf__bf16_panel {
    const uint16_t *a; // [m, k] with row stride a_stride; or packed by rlhf__bf16_pack_a
    size_t a_stride, m, k;
    const uint32_t *b;                // the panel, from pair 0
    size_t b_next;                    // words from b to the next panel, which is fetched ahead
    const float *bias;                // of the panel's columns; NULL allowed
    void *c;                          // first column of the panel
    size_t ldc, columns;              // columns <= NC
    int a_packed, c_bf16, accumulate; // accumulate: f32 only, C + sum
};

void rlhf__bf16_panel_run(const struct rlhf__bf16_panel *p);

// Words of one panel, and of m packed rows of A.
static inline size_t rlhf__bf16_panel_words(size_t k) { return (k + 1) / 2 * RLHF__BF16_NC; }
static inline size_t rlhf__bf16_a_words(size_t m, size_t k) {
    return (m + RLHF__BF16_MR - 1) / RLHF__BF16_MR * RLHF__BF16_MR * ((k + 1) / 2);
}

// One panel of B = columns 0 .. columns-1 of src. Row-major src[k][stride] (rows), or src[column]
// [stride] with k inside (cols); f32 is rounded to nearest even.
void rlhf__bf16_pack_rows_f32(uint32_t *dst, const float *src, size_t k, size_t columns,
                              size_t stride);
void rlhf__bf16_pack_cols_f32(uint32_t *dst, const float *src, size_t k, size_t columns,
                              size_t stride);
void rlhf__bf16_pack_rows(uint32_t *dst, const uint16_t *src, size_t k, size_t columns,
                          size_t stride);
void rlhf__bf16_pack_cols(uint32_t *dst, const uint16_t *src, size_t k, size_t columns,
                          size_t stride);

// A packed from its transpose: rows 0 .. m-1 of A are columns of src[k][stride].
void rlhf__bf16_pack_a(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);

#endif
