// attention.h: the parts that the attention kernels of both dtypes have in common: launch
// arguments, key tiles by logical index, segments, the exponential, and the order of sums over
// queries.
//
// In any layout, key j of a row is in tile j / KEYS of segment j / SEGMENT. Each segment has a
// separate online softmax, and segments are merged in order. So the result of a query has the same
// bits whether the query is alone (decoding) or among others, and with or without a cache or a
// shared prefix. A key that a query does not see contributes exactly zero. With a window, tiles and
// segments that a query does not see leave its state as it was at the beginning.
#ifndef RLHF_CUDA_ATTENTION_H
#define RLHF_CUDA_ATTENTION_H

#include "attention/ragged.h"
#include "machine/mathf.h"

enum { RLHF__ATTN_HEAD_DIM_MAX = 256, RLHF__ATTN_SEGMENT = 512 };

// The arguments of forward and backward. Strides are in elements.
struct rlhf__attn_args {
    struct rlhf__cuda_rows rows;
    const void *q, *k, *v;
    void *out;  // backward: read
    float *lse; // f32 [total, heads]; forward: may be NULL; backward: read
    int64_t q_stride, kv_stride, out_stride;
    int32_t heads, group, head_dim, causal; // group: query heads per head of k and v
    int32_t wide;                           // 1: the rows of all tensors allow 16-byte accesses
    int32_t tiles;                          // query tiles of the longest row; the launch uses them
    int32_t segments;                       // segments of the longest row, if `parts` is used
    int32_t window;                         // 0: none
    float scale, scale_log2;                // scale, and scale * log2(e)
    // With a softcap: the score of q . k is cap_log2 * tanh(bend * q . k), in units of log2.
    float bend, cap_log2; // cap_log2 0: none
    float *parts;         // workspace: partial results of the segments of long rows
};

struct rlhf__attn_bwd_args {
    struct rlhf__attn_args a;
    void *dq, *dk, *dv;
    const void *dout;
    float *delta; // f32 [total, heads] workspace: sums of dout * out
};

// One function for each dtype. The caller must have checked the arguments; `n` and `total` must not
// be 0. [step]
rlhf_status rlhf__cuda_attention_bf16(struct rlhf__cuda *cu, struct rlhf__attn_args *a);
rlhf_status rlhf__cuda_attention_f32(struct rlhf__cuda *cu, struct rlhf__attn_args *a);

// Return the number of bytes of RLHF__CUDA_WS_ATTN that a call needs. The first function is for the
// forward call *a in bf16; the addresses in *a need not be set. The second function is for a
// backward call.
uint64_t rlhf__cuda_attention_bf16_bytes(const struct rlhf__attn_args *a);
uint64_t rlhf__cuda_attention_bwd_bytes(uint32_t total, int32_t heads);

// The functions of the backward pass, with the same requirements on the arguments as in the forward
// pass. rlhf__cuda_attention_bwd computes delta and then calls the function of the dtype, which
// computes dq, dk and dv. [step]
rlhf_status rlhf__cuda_attention_bwd(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b,
                                     int32_t dtype);
rlhf_status rlhf__cuda_attention_bwd_bf16(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b);
rlhf_status rlhf__cuda_attention_bwd_f32(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b);

// 2^x for the f32 kernels, with the same bits on every card and on the emulation. For -126 <= x <=
// 127 the relative error is 8e-8. Below -126.5 the result is 0. A NaN stays a NaN. This function is
// shorter than rlhf__exp2f, because it does not handle denormals and infinity. The bf16 kernels
// compute their sums on tensor cores, and use rlhf__ex2 of ptx.h instead.
static __device__ __forceinline__ float rlhf__attn_exp2(float x) {
    x = x < -127.0f ? -127.0f : x;
    const float n = x + 12582912.0f, f = x - (n - 12582912.0f); // n: the nearest integer
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

// The first key that the query with the keys 0 .. end-1 up to its own sees.
static __device__ __forceinline__ int rlhf__attn_first(const struct rlhf__attn_args &a, int end) {
    return a.window && end > a.window ? end - a.window : 0;
}

// The score of q . k in units of log2.
static __device__ __forceinline__ float rlhf__attn_score(const struct rlhf__attn_args &a,
                                                         float dot) {
    return a.cap_log2 == 0.0f ? dot * a.scale_log2 : a.cap_log2 * rlhf__tanhf(dot * a.bend);
}

// The derivative of the score by its value without a cap.
static __device__ __forceinline__ float rlhf__attn_slope(const struct rlhf__attn_args &a,
                                                         float dot) {
    const float bent = a.cap_log2 == 0.0f ? 0.0f : rlhf__tanhf(dot * a.bend);
    return fmaf(-bent, bent, 1.0f);
}

// ---- backward: the queries that contribute to a tile of keys ----

// Iterates over tiles of STEP queries: all tiles of the group's first query head, then those of the
// next head, and so on. For each head, the queries of the row that owns the keys come first, in
// order of position. The queries of the rows that share these keys follow.
struct rlhf__attn_walk {
    struct rlhf__cuda_row row; // the row of these queries
    uint32_t index;            // index of that row
    int32_t head, pos;         // pos: position of the tile's first query, a multiple of STEP
};

template <int STEP>
static __device__ __forceinline__ void rlhf__attn_walk_row(struct rlhf__attn_walk *w,
                                                           const struct rlhf__cuda_row &row,
                                                           uint32_t index, int32_t pos) {
    w->row = row;
    w->index = index;
    w->pos = pos / STEP * STEP;
}

// Moves to the next tile. Returns 1, or 0 after the last tile. `own` is the row that owns the keys,
// and `index` is the index of `own`. `pos` is the position of the first query of `own` that sees
// one of the keys, and `limit` is one past the position of the last query that may see one. `end`
// is one past the last head.
template <int STEP>
static __device__ __forceinline__ int
rlhf__attn_walk_next(struct rlhf__attn_walk *w, const struct rlhf__cuda_rows &rows,
                     const struct rlhf__cuda_row &own, uint32_t index, int32_t pos, int32_t limit,
                     int32_t end) {
    w->pos += STEP;
    if (w->pos < rlhf__attn_min(w->row.nk, limit)) return 1;
    for (uint32_t i = w->index + 1; !own.np && rows.prefix_len && i < rows.n; i++) {
        struct rlhf__cuda_row next;
        if (rows.prefix_len[i] <= 0 || !rlhf__cuda_row_check_training(rows, i, &next)) break;
        if (!next.nq || next.start >= limit) continue;
        rlhf__attn_walk_row<STEP>(w, next, i, next.start);
        return 1;
    }
    rlhf__attn_walk_row<STEP>(w, own, index, pos);
    return ++w->head < end;
}

static __device__ __forceinline__ float rlhf__attn_quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
static __device__ __forceinline__ float rlhf__attn_quad_sum(float v) {
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}

#endif
