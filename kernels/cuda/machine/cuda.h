// cuda.h: the language in which the kernels are written. nvcc uses CUDA's own definitions. Any
// other C++ compiler uses the emulation of tests/cuda (emu.h on its include path), where a CUDA
// thread is a fiber.
//
// Kernels use only what is declared here: no cooperative groups, no <<<>>>, no float atomics (their
// order is not fixed), and no shuffles in a part of a warp. All threads of a block must reach every
// barrier.
#ifndef RLHF_CUDA_MACHINE_CUDA_H
#define RLHF_CUDA_MACHINE_CUDA_H

#include <stdint.h>

// SHARED(T, name) declares static shared memory, aligned to 16 bytes; T may be an array type.
// DYN_SHARED(name) is the launch's dynamic shared memory. LAUNCH(kernel, grid, block, shared bytes,
// stream, arguments ...) returns a cudaError_t. If a kernel uses more than 48 KiB of dynamic shared
// memory, call ALLOW_SHARED(kernel, bytes) before the launch.
#ifdef __CUDACC__
#include <cuda_runtime.h>
template <class T> using rlhf__whole = T; // allows an array type before the name
#define SHARED(T, name)  __shared__ __align__(16) rlhf__whole<T> name
#define DYN_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#define ALLOW_SHARED(kernel, bytes)                                                                \
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes))
#define LAUNCH(kernel, grid, block, smem, stream, ...)                                             \
    (kernel<<<(grid), (block), (smem), (stream)>>>(__VA_ARGS__), cudaGetLastError())
#else
#include "emu.h"
#endif

// ---- bf16 as raw bits ----

typedef uint16_t rlhf__bf16;

static __device__ __forceinline__ float rlhf__from_bf16(rlhf__bf16 b) {
    return __uint_as_float((unsigned)b << 16);
}

// Rounds to nearest even; NaN stays NaN.
static __device__ __forceinline__ rlhf__bf16 rlhf__to_bf16(float f) {
    const unsigned u = __float_as_uint(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (rlhf__bf16)(u >> 16 | 64u);
    return (rlhf__bf16)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

// Element i of an array of T = float or rlhf__bf16, as a float.
static __device__ __forceinline__ float rlhf__get(const float *p, uint64_t i) { return p[i]; }
static __device__ __forceinline__ float rlhf__get(const rlhf__bf16 *p, uint64_t i) {
    return rlhf__from_bf16(p[i]);
}
static __device__ __forceinline__ void rlhf__put(float *p, uint64_t i, float v) { p[i] = v; }
static __device__ __forceinline__ void rlhf__put(rlhf__bf16 *p, uint64_t i, float v) {
    p[i] = rlhf__to_bf16(v);
}

// ---- sums in a fixed order ----

// The sum and the maximum of a value over a whole warp; every lane gets the result.
template <class T> static __device__ __forceinline__ T rlhf__warp_sum(T v) {
    for (int m = 16; m; m >>= 1)
        v += __shfl_xor_sync(~0u, v, m);
    return v;
}
static __device__ __forceinline__ float rlhf__warp_max(float v) {
    for (int m = 16; m; m >>= 1)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, m));
    return v;
}

#endif
