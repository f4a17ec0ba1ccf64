// gemm_tile.h: the size of the f32 tile of a level: MR rows by the NC columns of a panel.
// Hot sources include this file after vec.h, or instead of vec.h.
#ifndef RLHF_CPU_PRODUCT_GEMM_TILE_H
#define RLHF_CPU_PRODUCT_GEMM_TILE_H

#include "machine/vec.h"

#define NC ((size_t)2 * VP_LANES)

// The two vectors of sums of every row stay in registers. On AVX-512, they use 24 of 32 registers.
// On AVX2 and SSE2, they use 12 of 16. On NEON, they use only 16 of 32, because a step needs 10
// registers for its operands.
#if VP_LANES == 16
#define MR 12
#elif VP_COUNT == 32
#define MR 8
#else
#define MR 6
#endif

#endif
