// amx.h: bf16 GEMMs on AMX tiles. Compiled for AMX; call these functions only at that
// level.
//
// B is packed as in bf16.h: a block of 16 pairs by 16 columns is an AMX operand without conversion.
// An output is a chain of two-term dot products over ascending k, where k is padded with zeros to a
// multiple of RLHF__AMX_K. The chain is the same in every tile, so the bits of a row depend only on
// the row and on B.
#ifndef RLHF_CPU_PRODUCT_AMX_H
#define RLHF_CPU_PRODUCT_AMX_H

#include "machine/products_list.h"

#define RLHF__AMX_MR 32 // rows of a tile
#define RLHF__AMX_K  32 // elements of k per step

// The tile shapes are a part of each thread's AMX state. A thread must therefore call
// rlhf__amx_begin before its first panel, and rlhf__amx_end after its last panel.
void rlhf__amx_begin(void);
void rlhf__amx_end(void);

// Like rlhf__bf16_panel. A packed A must come from rlhf__amx_pack_a or rlhf__amx_pack_rows.
void rlhf__amx_panel(const struct rlhf__panel *p);

// Pack A from its transpose: rows 0 .. m-1 of A are columns of src[k][stride]. The layout is
// [ceil(m / 16)][ceil(k / 32)][16][32], so each block of 16 rows by one step of k (32 elements) is
// contiguous. Missing elements are zeros.
void rlhf__amx_pack_a(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);

// The same packing from rows stored as src[m][stride].
void rlhf__amx_pack_rows(uint32_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);

#endif
