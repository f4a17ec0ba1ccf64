// ptx.h: instructions without a C++ equivalent: matrix products, ex2, asynchronous loads.
#ifndef RLHF_CUDA_MACHINE_PTX_H
#define RLHF_CUDA_MACHINE_PTX_H

#include "cuda.h"

// d += A[16x16] B[16x8], computed by a warp with bf16 inputs and f32 sums. `d`, `a` and `b` are
// this thread's fragments, as in PTX's mma.m16n8k16.row.col.
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

// 2^x with an error of at most two ulp. A denormal x or result becomes 0. The result is 0 for -inf,
// exactly 1 for 0, and a NaN for a NaN. All cards return the same bits, but the emulation returns
// other bits.
static __device__ __forceinline__ float rlhf__ex2(float x) {
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return emu_ex2(x);
#endif
}

// sum[M][N] += a[d][M] b[d][N] for each of the D values of d, in ascending order, with one FMA
// each.
template <int D, int M, int N>
static __device__ __forceinline__ void rlhf__fma_outer(float (&sum)[M][N], const float (&a)[D][M],
                                                       const float (&b)[D][N]) {
#ifdef __CUDACC__
#pragma unroll
    for (int d = 0; d < D; d++)
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < N; n++)
                sum[m][n] = fmaf(a[d][m], b[d][n], sum[m][n]);
#else
    emu_fma_outer<D, M, N>(&sum[0][0], &a[0][0], &b[0][0]);
#endif
}

// ---- fragments from shared memory ----

// Load four 8x8 matrices of 16-bit elements into mma fragments. Lane l passes the address of
// row l % 8 of matrix l / 8. Each row has 16 bytes and is aligned to 16 bytes. From each matrix,
// lane l gets elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4; r[i] holds those of matrix i.
// rlhf__ldmatrix_x4_trans does the same with the transposed matrices.
static __device__ __forceinline__ void rlhf__ldmatrix_x4(unsigned r[4], const void *row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
#else
    emu_ldmatrix_x4(r, row, 0);
#endif
}
static __device__ __forceinline__ void rlhf__ldmatrix_x4_trans(unsigned r[4], const void *row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
#else
    emu_ldmatrix_x4(r, row, 1);
#endif
}

// Like rlhf__ldmatrix_x4, but for two matrices. Lanes 0 .. 15 pass the addresses of the rows.
static __device__ __forceinline__ void rlhf__ldmatrix_x2(unsigned r[2], const void *row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
#else
    emu_ldmatrix_x2(r, row, 0);
#endif
}
static __device__ __forceinline__ void rlhf__ldmatrix_x2_trans(unsigned r[2], const void *row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"((unsigned)__cvta_generic_to_shared(row))
                 : "memory");
#else
    emu_ldmatrix_x2(r, row, 1);
#endif
}

// ---- asynchronous loads ----

// Copy the first `bytes` (0 .. 16) of 16 bytes from global to shared memory, and set the rest of
// the 16 bytes there to zero. Both addresses must be aligned to 16 bytes. If `bytes` is 0, `from`
// is not read. rlhf__cp_async4 does the same with 4 instead of 16 bytes. This thread can read the
// data after rlhf__cp_async_wait. Other threads can read it after a barrier that follows the wait.
static __device__ __forceinline__ void rlhf__cp_async16(void *to, const void *from,
                                                        unsigned bytes = 16) {
#ifdef __CUDACC__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
#else
    emu_cp_async(to, from, bytes, 16);
#endif
}
static __device__ __forceinline__ void rlhf__cp_async4(void *to, const void *from,
                                                       unsigned bytes = 4) {
#ifdef __CUDACC__
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
#else
    emu_cp_async(to, from, bytes, 4);
#endif
}

// rlhf__cp_async_commit ends a group of this thread's copies. rlhf__cp_async_wait waits until at
// most `left` of the thread's groups are in flight.
static __device__ __forceinline__ void rlhf__cp_async_commit() {
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    emu_cp_async_commit();
#endif
}
template <int left> static __device__ __forceinline__ void rlhf__cp_async_wait() {
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#else
    emu_cp_async_wait(left);
#endif
}

#endif
