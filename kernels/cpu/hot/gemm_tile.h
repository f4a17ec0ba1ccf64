// hot/gemm_tile.h: the size of the f32 tile of a level: MR rows by the NC columns of a panel.
// Included by hot sources after vec.h or instead of it.
#ifndef RLHF_CPU_HOT_GEMM_TILE_H
#define RLHF_CPU_HOT_GEMM_TILE_H

#include "vec.h"

#define NC ((size_t)2 * VP_LANES)

// Two sums per row stay in registers. This uses 24 of 32 registers, or 12 of 16. NEON has 32, but
// there an operand cannot come from memory. So GCC 12 can keep 20 sums in registers, but not 24.
#if VP_LANES == 16
#define MR 12
#elif VP_COUNT == 32
#define MR 10
#else
#define MR 6
#endif

#endif
