// attention.h: what the attention kernels of both dtypes share: the arguments of a launch, tiles of
// keys by logical index, segments, and the exponential.
//
// Whatever the layout, key j of a row is in tile j / KEYS of segment j / SEGMENT. A segment has an
// online softmax of its own; segments are merged in order. So a query has the same bits alone
// (decode), among others, from a cache or behind a shared prefix. What a tile adds for keys that a
// query does not see is exactly nothing.
#ifndef RLHF_CUDA_ATTENTION_H
#define RLHF_CUDA_ATTENTION_H

#include "mathf.h"
#include "ragged.h"

enum { RLHF__ATTN_HEAD_DIM_MAX = 128, RLHF__ATTN_SEGMENT = 512 };

// Of forward and backward alike. Strides in elements.
struct rlhf__attn_args {
    struct rlhf__cuda_rows rows;
    const void *q, *k, *v;
    void *out;  // backward: read
    float *lse; // f32 [total, heads]; forward: or NULL; backward: read
    int64_t q_stride, kv_stride, out_stride;
    int32_t heads, group, head_dim, causal; // group: query heads that share a head of k and v
    int32_t wide;                           // rows of all tensors may be moved 16 bytes at a time
    int32_t tiles;                          // query tiles of the longest row, the launch's
    float scale, scale_log2;                // scale, and scale * log2(e)
};

struct rlhf__attn_bwd_args {
    struct rlhf__attn_args a;
    void *dq, *dk, *dv;
    const void *dout;
    float *delta; // f32 [total, heads] workspace: sum of dout * out
};

// One of these a dtype. The arguments are checked; n and total are not 0. [step]
rlhf_status rlhf__cuda_attention_bf16(struct rlhf__cuda *cu, struct rlhf__attn_args *a);
rlhf_status rlhf__cuda_attention_f32(struct rlhf__cuda *cu, struct rlhf__attn_args *a);

// 2^x for x <= 127 with a relative error of 8e-8; 0 below -127. NaN stays NaN. Shorter than
// rlhf__exp2f by what denormals and infinity take there.
static __device__ __forceinline__ float rlhf__attn_exp2(float x) {
    x = x < -127.0f ? -127.0f : x;
    const float n = x + 12582912.0f, f = x - (n - 12582912.0f); // n: to the nearest integer
    float p = 0.00015353362f;                                   // least relative error for |f| < .5
    p = fmaf(p, f, 0.0013398875f);
    p = fmaf(p, f, 0.00961843692f);
    p = fmaf(p, f, 0.0555033237f);
    p = fmaf(p, f, 0.240226477f);
    p = fmaf(p, f, 0.693147182f);
    p = fmaf(p, f, 1.0f);
    return p * __uint_as_float((__float_as_uint(n) << 23) + 0x3f800000u);
}

static __device__ __forceinline__ int rlhf__attn_min(int a, int b) { return a < b ? a : b; }

static __device__ __forceinline__ float rlhf__attn_quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
static __device__ __forceinline__ float rlhf__attn_quad_sum(float v) {
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

#endif
