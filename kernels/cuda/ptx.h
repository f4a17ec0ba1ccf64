// ptx.h: the instructions that C++ has no name for: matrix products, ex2, loads that do not wait.
#ifndef RLHF_CUDA_PTX_H
#define RLHF_CUDA_PTX_H

#include "cuda.h"

// d[4] += A[16x16] B[16x8] of a warp, bf16 in, f32 sums; fragments as in PTX mma.m16n8k16.row.col.
static __device__ __forceinline__ void rlhf__mma_bf16(float d[4], const unsigned a[4],
                                                      const unsigned b[2]) {
#ifdef __CUDACC__
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    emu_mma_bf16(d, a, b);
#endif
}

#endif
