// hot/amx.h: bf16 products on AMX tiles. Compiled for AMX only; call at the level of that name.
//
// B is packed as in bf16.h, whose 16 pairs by 16 columns are an AMX operand as they lie. An output
// is a chain of two-term dot products over ascending k that ends in zeros up to a multiple of
// RLHF__AMX_K, whatever tile it falls in: a row's bits depend on the row and B alone.
#ifndef RLHF_CPU_HOT_AMX_H
#define RLHF_CPU_HOT_AMX_H

#include "products_list.h"

#define RLHF__AMX_MR 32 // rows of a tile
#define RLHF__AMX_K  32 // elements of k of one step

// Tile shapes are state of a thread: begin before its first panel, end after its last.
void rlhf__amx_begin(void);
void rlhf__amx_end(void);

// As rlhf__bf16_panel; a packed A is that of rlhf__amx_pack_a or rlhf__amx_pack_rows.
void rlhf__amx_panel(const struct rlhf__panel *p);

// A packed from its transpose: rows 0 .. m-1 of A are columns of src[k][stride]. 16 rows by one
// step of k lie together, [m / 16 up][k / 32 up][16][32], zero-filled.
void rlhf__amx_pack_a(uint16_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);

// The same packing of rows that lie as src[m][stride].
void rlhf__amx_pack_rows(uint16_t *dst, const uint16_t *src, size_t m, size_t k, size_t stride);

#endif
