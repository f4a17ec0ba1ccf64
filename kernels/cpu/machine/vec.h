// vec.h: vectors of f32 lanes, written once for five instruction sets. A hot source
// includes this file and is compiled once per level. The compiler flags choose the machine vectors:
// 4 lanes (aarch64, NEON; x86-64 baseline, SSE2), 8 lanes (AVX2 + FMA) or 16 lanes (AVX-512
// F/BW/DQ/VL, with or without BF16).
//
// All levels give the same bits, because a vf has 16 lanes everywhere (vec_parts.h), and every
// operation below is exact or rounded once. An element goes through the same operations at every
// position, because a tail runs the same code on masked lanes. The independence of rows relies on
// this.
//
// A vp is the machine's own vector, for loops whose results do not depend on the number of lanes
// (hot_gemm.c, hot_gemm_pack.c). These loops need some of the functions below in a version for vp:
// vp_add, vp_load_n and so on.
//
//   vf, VF_LANES = 16                the vector and its number of lanes
//   vp, VP_LANES, VP_COUNT           the machine's vector, its number of lanes, and how many such
//                                    registers the machine has
//   vp_stream(p, v)                  vp_store that bypasses the caches, if the machine can do that;
//                                    p is aligned to a vector. Call vp_stream_end() after the last
//                                    vp_stream
//   vp_fma_to(c, a, b)               *c = a * b + *c in one register; if VP_FMA_TO is defined.
//                                    GCC 12 moves and spills the sums of an unrolled loop of vp_fma
//   vp_fma_lane_to(c, a, i, b)       the same with lane i of a; if VP_FMA_LANE_TO is defined
//   vf_zero() vf_set1(x)
//   vf_load(p) vf_store(p, v)        f32, any alignment
//   vf_load_n(p, n) vf_store_n(...)  the first n lanes, 0 <= n <= VF_LANES; other lanes read as 0,
//                                    and their memory is not touched
//   vf_load_bf16 / _n, vf_store_bf16 / _n   bf16 (uint16_t), rounded to nearest even. NaN
//                                    stays NaN. Below 2^-126 the result is a zero of the same sign,
//                                    as with VCVTNEPS2BF16. All levels give the same bits
//   vf_add sub mul div sqrt abs      lane by lane
//   vf_fma(a, b, c) = a * b + c      vf_fnma(a, b, c) = c - a * b
//   vf_max(a, b) vf_min(a, b)        b when either is NaN
//   vf_gt(a, b, x, y)                a > b ? x : y
//   vf_keep_n(v, n, other)           the first n lanes of v, the rest of other
//   vf_copysign(mag, sign)           mag must not be negative
//   vf_round(x)                      nearest integer, even on a tie, |x| < 2^22
//   vf_scale2(p, n)                  p * 2^n; n is an integer in [-125, 128], p is in [0.5, 2)
//   vf_hsum(v) vf_hmax(v)            over lanes, in halving order
//   vf_dp2(acc, a, b)                lanes are pairs of bf16: acc + a.odd b.odd, then
//                                    + a.even b.even
//   vf_transpose_n(r, rows, columns) transposes VF_LANES vectors of 32-bit units in place. The
//                                    vectors after the first `rows` are zero. Only the first
//                                    `columns` vectors of the result are valid
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
static inline void vp_stream_end(void) { _mm_sfence(); }
#endif

#if defined(__aarch64__)
#include "vec_neon.h"
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) &&                    \
    defined(__AVX512VL__)
#include "vec_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "vec_avx2.h"
#else
#include "vec_sse2.h"
#endif

#ifndef VF_LANES
#include "vec_parts.h"
#endif

#include "vec_tails.h"

#include "vec_flush.h"

#include "vec_math.h"

#endif
