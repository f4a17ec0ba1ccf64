// lanes.h: accesses to several adjacent elements of a row at once: 4 elements of f32 or bf16, or 8
// of bf16.
//
// WIDE means that all addresses are aligned (see rlhf__aligned). With WIDE, a lane loads its
// elements in one access of 8 or 16 bytes. Without WIDE, it needs one access for each element. A
// lane loads the same elements in both cases, so alignment affects only the speed, not the bits.
#ifndef RLHF_CUDA_LANES_H
#define RLHF_CUDA_LANES_H

#include "machine/cuda.h"

// True if the row at p and all later rows, each of `width` elements, can be loaded N elements at a
// time.
template <int N, class T> static inline bool rlhf__aligned(const T *p, uint64_t width) {
    return (uintptr_t)p % (N * sizeof(T)) == 0 && width % N == 0;
}

static __device__ __forceinline__ void rlhf__wide_get(float (&v)[4], const float *p) {
    const float4 f = *(const float4 *)p;
    v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
}
static __device__ __forceinline__ void rlhf__wide_put(float *p, const float (&v)[4]) {
    float4 f;
    f.x = v[0], f.y = v[1], f.z = v[2], f.w = v[3];
    *(float4 *)p = f;
}

static __device__ __forceinline__ void rlhf__unpack(float *v, unsigned two) {
    v[0] = __uint_as_float(two << 16);
    v[1] = __uint_as_float(two & 0xffff0000u);
}
static __device__ __forceinline__ unsigned rlhf__pack(const float *v) {
    return (unsigned)rlhf__to_bf16(v[0]) | (unsigned)rlhf__to_bf16(v[1]) << 16;
}
static __device__ __forceinline__ void rlhf__wide_get(float (&v)[4], const rlhf__bf16 *p) {
    const uint2 u = *(const uint2 *)p;
    rlhf__unpack(v, u.x);
    rlhf__unpack(v + 2, u.y);
}
static __device__ __forceinline__ void rlhf__wide_put(rlhf__bf16 *p, const float (&v)[4]) {
    uint2 u;
    u.x = rlhf__pack(v), u.y = rlhf__pack(v + 2);
    *(uint2 *)p = u;
}
static __device__ __forceinline__ void rlhf__wide_get(float (&v)[8], const rlhf__bf16 *p) {
    const uint4 u = *(const uint4 *)p;
    rlhf__unpack(v, u.x);
    rlhf__unpack(v + 2, u.y);
    rlhf__unpack(v + 4, u.z);
    rlhf__unpack(v + 6, u.w);
}
static __device__ __forceinline__ void rlhf__wide_put(rlhf__bf16 *p, const float (&v)[8]) {
    uint4 u;
    u.x = rlhf__pack(v), u.y = rlhf__pack(v + 2);
    u.z = rlhf__pack(v + 4), u.w = rlhf__pack(v + 6);
    *(uint4 *)p = u;
}

// rlhf__load loads N elements of p[n], from index `at` onward. Elements at index n or later are
// read as 0. rlhf__store stores N elements at the same indices, but skips those at index n or
// later.
template <bool WIDE, int N, class T>
static __device__ __forceinline__ void rlhf__load(float (&v)[N], const T *p, uint64_t at,
                                                  uint64_t n) {
    if (WIDE && at + N <= n) {
        rlhf__wide_get(v, p + at);
        return;
    }
    for (int i = 0; i < N; i++)
        v[i] = at + i < n ? rlhf__get(p, at + i) : 0.0f;
}
template <bool WIDE, int N, class T>
static __device__ __forceinline__ void rlhf__store(T *p, const float (&v)[N], uint64_t at,
                                                   uint64_t n) {
    if (WIDE && at + N <= n) {
        rlhf__wide_put(p + at, v);
        return;
    }
    for (int i = 0; i < N; i++)
        if (at + i < n) rlhf__put(p, at + i, v[i]);
}

// ---- one pass over a flat array: each thread processes 8 elements ----
//
// A thread needs 8 / N accesses for its 8 elements. In each access, adjacent threads access
// adjacent elements, so each access of a warp is contiguous.

enum { RLHF__FLAT_THREADS = 256, RLHF__FLAT_EACH = 8 };

static inline dim3 rlhf__flat_grid(uint64_t n) {
    const uint64_t each = RLHF__FLAT_THREADS * RLHF__FLAT_EACH;
    return dim3((unsigned)((n + each - 1) / each));
}

// The number of elements in a 16-byte access, and the number of accesses of a thread.
template <class T> struct rlhf__flat_lanes {
    enum { N = 16 / sizeof(T), GROUPS = RLHF__FLAT_EACH / N };
};

// The first element of access g of this thread.
template <int N> static __device__ __forceinline__ uint64_t rlhf__flat_at(int g) {
    return (uint64_t)blockIdx.x * (RLHF__FLAT_THREADS * RLHF__FLAT_EACH) +
           (unsigned)(g * RLHF__FLAT_THREADS + (int)threadIdx.x) * N;
}

#endif
