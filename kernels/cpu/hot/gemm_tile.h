// hot/gemm_tile.h: the f32 tile of a level, MR rows by the NC columns of a panel. Included by hot
// sources after vec.h, or in its place.
#ifndef RLHF_CPU_HOT_GEMM_TILE_H
#define RLHF_CPU_HOT_GEMM_TILE_H

#include "vec.h"

#define NC ((size_t)2 * VP_LANES)

// Two sums per row stay in registers. That takes 24 of 32 registers, or 12 of 16. With NEON's 32,
// GCC 12 keeps 20 sums in registers, but not 24, because there an operand cannot come from memory.
#if VP_LANES == 16
#define MR 12
#elif VP_COUNT == 32
#define MR 10
#else
#define MR 6
#endif

#endif
