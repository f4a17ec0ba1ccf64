// attention_f32.h: tiles in shared memory for the f32 attention kernels. A warp owns 8 rows
// (queries or, in backward, keys) and processes 32 other rows at a time. Each lane computes the dot
// products of one of the 32 rows with the 8 rows. Then each lane adds to columns lane, lane + 32,
// ... of the sums of the 8 rows. Rows of a tile are HD + 4 elements apart, so that 16-byte reads of
// adjacent rows avoid bank conflicts.
#ifndef RLHF_CUDA_ATTENTION_F32_H
#define RLHF_CUDA_ATTENTION_F32_H

#include "attention/attention.h"

enum { RLHF__ATTN_OWN = 8, RLHF__ATTN_OTHERS = 32, RLHF__ATTN_WARPS = 4 };

// Copy keys `first` .. `first` + rows - 1 of row r into `to`. To copy queries, the caller passes an
// r whose k0 is the row's first query. Rows below `begin` and rows from `end` onward are not read
// and become zeros, and so do columns from head_dim to the next multiple of 4. x points to the
// first column of the head.
template <int HD>
static __device__ __forceinline__ void
rlhf__attn_load(float *to, const float *x, int64_t stride, const struct rlhf__cuda_row &r,
                int first, int rows, int begin, int end, int head_dim, int wide) {
    const int chunks = (head_dim + 3) / 4;
    for (int i = (int)threadIdx.x; i < rows * chunks; i += (int)blockDim.x) {
        const int j = first + i / chunks, col = i % chunks * 4;
        const int n = j >= begin && j < end ? head_dim - col : 0; // existing elements
        const float *from = n ? x + rlhf__cuda_key(r, j) * stride + col : x;
        float *at = to + i / chunks * (HD + 4) + col;
        if (wide && n)
            *(float4 *)at = *(const float4 *)from;
        else
            for (int e = 0; e < 4; e++)
                at[e] = e < n ? from[e] : 0.0f;
    }
}

// s[8] = the products of the 8 rows at `own` with the row at `other`.
template <int HD>
static __device__ __forceinline__ void rlhf__attn_dots(float *s, const float *own,
                                                       const float *other, int head_dim) {
#pragma unroll
    for (int q = 0; q < RLHF__ATTN_OWN; q++)
        s[q] = 0.0f;
    for (int c = 0; c < head_dim; c += 4) {
        const float4 y = *(const float4 *)(other + c);
#pragma unroll
        for (int q = 0; q < RLHF__ATTN_OWN; q++) {
            const float4 x = *(const float4 *)(own + q * (HD + 4) + c);
            s[q] = fmaf(x.x, y.x, s[q]);
            s[q] = fmaf(x.y, y.y, s[q]);
            s[q] = fmaf(x.z, y.z, s[q]);
            s[q] = fmaf(x.w, y.w, s[q]);
        }
    }
}

// d[q][i] += sum over j < n of p[j][q] times column lane + 32 i of row j of the tile.
template <int HD>
static __device__ __forceinline__ void rlhf__attn_add(float (*d)[HD / 32], const float *p,
                                                      const float *tile, int n, int head_dim) {
    const int lane = (int)threadIdx.x % 32;
    for (int j = 0; j < n; j++) {
        const float4 a = *(const float4 *)(p + j * RLHF__ATTN_OWN);
        const float4 b = *(const float4 *)(p + j * RLHF__ATTN_OWN + 4);
        const float w[RLHF__ATTN_OWN] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < HD / 32; i++) {
            const int c = lane + 32 * i;
            if (c >= head_dim) continue; // skips sums that will not be stored
            const float y = tile[j * (HD + 4) + c];
#pragma unroll
            for (int q = 0; q < RLHF__ATTN_OWN; q++)
                d[q][i] = fmaf(w[q], y, d[q][i]);
        }
    }
}

#endif
