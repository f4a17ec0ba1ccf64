// matmul.h: what a matrix product of the CPU backend is. Who makes it: gemm.h, or a library.
#ifndef RLHF_CPU_MATMUL_H
#define RLHF_CPU_MATMUL_H

#include <stdint.h>

// A matrix product dst[m, n] (+)= src[m, k] wei[k, n] + bias[n].
struct rlhf__matmul {
    int64_t m, k, n;
    int32_t in_dtype, out_dtype;
    uint8_t src_transposed; // src lies as [k, m]
    uint8_t wei_transposed; // wei lies as [n, k]; ignored when packed
    uint8_t wei_packed;     // wei lies in the layout of who multiplies
    uint8_t wei_across;     // with wei_packed: it is packed as [n, k] (gemm.h), not for a library
    uint8_t accumulate;     // dst += instead of =
    uint8_t goes_on;        // with accumulate: the sums start at dst (gemm.h)
    uint8_t bias;           // f32 [n]
    uint8_t reserved[1];
    int64_t ldc; // own tiles only: elements from row to row of dst; 0: n
};

// A second product on top of one of as many rows and columns (rlhf__gemm_sum).
struct rlhf__gemm_second {
    const void *src, *wei;
    int64_t k;
};

#endif
