// bf16.h: register tiles and packing of bf16 GEMMs on AVX512_BF16. Compiled for
// AVX512_BF16; call these functions only at that level or above.
//
// Operands consist of pairs along k: a 32-bit word has the elements of steps 2i and 2i + 1 of k. B
// is stored in panels of RLHF__BF16_NC columns, as [pairs][NC] words. Elements past the last column
// or past an odd k are zeros. Every output is one chain of two-term dot products along k (see
// struct rlhf__panel).
#ifndef RLHF_CPU_PRODUCT_BF16_H
#define RLHF_CPU_PRODUCT_BF16_H

#include "machine/products_list.h"

#define RLHF__BF16_NC 32 // columns per panel
#define RLHF__BF16_MR 12 // rows per tile

// Multiply A with a panel. A is packed or read row by row. rlhf__bf16_tile_* accept at most one
// tile of rows, and rlhf__bf16_tiles_* accept any number of rows.
void rlhf__bf16_tile_packed(const struct rlhf__panel *p);
void rlhf__bf16_tile_rows(const struct rlhf__panel *p);
void rlhf__bf16_tiles_packed(const struct rlhf__panel *p);
void rlhf__bf16_tiles_rows(const struct rlhf__panel *p);

// If c_bf16 is set, C is bf16, otherwise f32. `accumulate` is allowed only for f32.
static inline void rlhf__bf16_panel(const struct rlhf__panel *p) {
    if (p->m <= RLHF__BF16_MR) {
        if (p->a_packed)
            rlhf__bf16_tile_packed(p);
        else
            rlhf__bf16_tile_rows(p);
    } else if (p->a_packed) {
        rlhf__bf16_tiles_packed(p);
    } else {
        rlhf__bf16_tiles_rows(p);
    }
}

// Pack one panel of B from columns 0 .. columns-1 of src. The `rows` functions read src[k][stride],
// the `cols` functions src[column][stride]. f32 is rounded to nearest even. With `stream`, stores
// bypass the caches, and dst must be aligned to 64 bytes.
void rlhf__bf16_pack_rows_f32(uint32_t *dst, const float *src, size_t k, size_t columns,
                              size_t stride, int stream);
void rlhf__bf16_pack_cols_f32(uint32_t *dst, const float *src, size_t k, size_t columns,
                              size_t stride, int stream);
void rlhf__bf16_pack_rows(uint32_t *dst, const uint16_t *src, size_t k, size_t columns,
                          size_t stride);
void rlhf__bf16_pack_cols(uint32_t *dst, const uint16_t *src, size_t k, size_t columns,
                          size_t stride);

// Convert a packed panel of B's transpose to a packed panel of B, which has `rows` steps of k. Row
// c of src becomes column c of dst. src has `columns` rows; the later columns of dst are filled
// with zeros. Also prefetches the data at src + next, which a later call reads.
void rlhf__bf16_turn_b(uint32_t *dst, const uint32_t *src, size_t rows, size_t columns,
                       size_t next);

// The steps k0 .. k0 + k - 1 of a quantised panel (bf16_unpack.h), as words and as f32 numbers. k0
// and k are multiples of 32.
void rlhf__bf16_unquantise(uint32_t *to, const uint8_t *panel, int format, size_t k0, size_t k);
void rlhf__bf16_unquantise_f32(float *to, const uint8_t *panel, int format, size_t k0, size_t k);

// Like rlhf__bf16_panel for at most RLHF__GEMM_FEW rows that are not packed, with the steps k0 ..
// k0 + k - 1 of a quantised panel instead of p->b. Without goes_on.
void rlhf__bf16_few(const struct rlhf__panel *p, const uint8_t *panel, int format, size_t k0);

// Packs A from its transpose: rows 0 .. m-1 of A are columns of src[k][stride].
void rlhf__bf16_pack_a(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);

#endif
