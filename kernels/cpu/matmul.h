// matmul.h: the description of a GEMM of the CPU backend, run by gemm.h or by a library.
#ifndef RLHF_CPU_MATMUL_H
#define RLHF_CPU_MATMUL_H

#include <stdint.h>

// A GEMM dst[m, n] (+)= src[m, k] wei[k, n] + bias[n].
struct rlhf__matmul {
    int64_t m, k, n;
    int32_t in_dtype, out_dtype;
    uint8_t src_transposed; // src is stored as [k, m]
    uint8_t wei_transposed; // wei is stored as [n, k]; ignored when packed
    uint8_t wei_packed;     // wei is in the packed layout of gemm.h or the library
    uint8_t wei_across;     // with wei_packed: packed as [n, k] (gemm.h only, not for a library)
    uint8_t accumulate;     // dst += instead of =
    uint8_t goes_on;        // with accumulate: the sums start at dst (gemm.h)
    uint8_t bias;           // f32 [n]
    uint8_t pairs;          // f32 operands that are widened bf16, in the layout below
    int64_t ldc;            // own tiles only: elements from row to row of dst; 0: n
};

// The layout with pairs. The result has the bits of the bf16 GEMM of hot/bf16_tile.c, which adds
// the second element of a pair along k first. So steps 2i and 2i + 1 of k are exchanged in both
// operands, and the ordinary loop of the f32 tiles then adds in the same order. k is even: the
// partner of an odd k's last element is 0.
static inline int64_t rlhf__pairs_k(int64_t k) { return (k + 1) / 2 * 2; }

// A second GEMM added to one with the same rows and columns (rlhf__gemm_sum).
struct rlhf__gemm_second {
    const void *src, *wei;
    int64_t k;
};

#endif
