// rope.h: the arguments of the rotary position kernels, rope.cu and rope_bwd.cu.
#ifndef RLHF_CUDA_ROPE_H
#define RLHF_CUDA_ROPE_H

#include "machine/context.h"
#include "row/lanes.h"

// One call, in the form that kernels use. The first 2 `half` elements of a head are rotated in
// pairs (c, c + half). The heads of row t of x start at t * stride; the heads of queries come
// first.
struct rlhf__rope_args {
    const int32_t *pos;
    const float *turn; // [n_pos, 2 half]: cosines, sines
    const float *gamma_q, *gamma_k;
    void *raw;    // [rows, heads * dim], or NULL
    float *stats; // [rows, norms], or NULL
    int64_t stride;
    uint32_t rows, heads, queries; // heads: total number for queries and keys
    uint32_t norms; // of a row: heads; if `whole`, one of the queries, one of the keys
    bool whole;
    uint32_t dim, half, rest; // elements of a head: 2 half + 2 rest
    int32_t n_pos;
    float eps, offset; // offset: added to the gammas
    struct rlhf__fault *fault;
    int code; // code of the fault that an invalid position raises
};

// Read and check the caller's struct, and fill *a except `code`, which the caller sets. On failure,
// returns RLHF_E_INVALID or RLHF_E_UNSUPPORTED with an error text. [step]
rlhf_status rlhf__rope_read(struct rlhf__cuda *cu, const char *op, struct rlhf__rope_args *a,
                            const rlhf_rope *from, uint32_t rows, int32_t *dtype);

// Rotates heads that have no norms. With `back`, rotates in the other direction. [step]
rlhf_status rlhf__rope_turn(struct rlhf__cuda *cu, const struct rlhf__rope_args *a, rlhf_dev x,
                            int32_t dtype, int back);

// True if the heads of x (and raw) can be loaded N elements at a time.
template <int N, class T> static inline bool rlhf__rope_aligned(const rlhf__rope_args &a, T *x) {
    return rlhf__aligned<N>(x, (uint64_t)a.stride) && rlhf__aligned<N>((T *)a.raw, 0) &&
           rlhf__aligned<N>(a.turn, 0) && rlhf__aligned<N>(a.gamma_q, 0) &&
           rlhf__aligned<N>(a.gamma_k, 0) && a.half % N == 0 && a.rest % N == 0;
}

// Returns the table's entry for the position of row t of x, or NULL if the position is invalid. If
// `first` is set, an invalid position also raises a fault.
static __device__ __forceinline__ const float *rlhf__rope_at(const rlhf__rope_args &a, uint64_t t,
                                                             bool first) {
    const int32_t p = a.pos[t];
    if (p >= 0 && p < a.n_pos) return a.turn + (uint64_t)p * 2 * a.half;
    if (first) rlhf__fault_raise(a.fault, a.code, (long long)t, p, a.n_pos);
    return NULL;
}

// A part of a head: the elements that are rotated, or the rest, which is computed in pairs too.
struct rlhf__rope_part {
    uint32_t at, half; // its first element; half of its elements
    bool turns;
};

static __device__ __forceinline__ rlhf__rope_part rlhf__rope_part_of(const rlhf__rope_args &a,
                                                                     bool rest) {
    if (rest) return {2 * a.half, a.rest, false};
    return {0, a.half, true};
}

// The heads of norm j of a row: `count` heads from `first` on.
struct rlhf__rope_heads {
    uint32_t first, count;
};

static __device__ __forceinline__ rlhf__rope_heads rlhf__rope_heads_of(const rlhf__rope_args &a,
                                                                       uint32_t j) {
    if (!a.whole) return {j, 1};
    return j ? rlhf__rope_heads{a.queries, a.heads - a.queries} : rlhf__rope_heads{0, a.queries};
}

// Rotates (u, v) by the angle with this cosine and sine.
static __device__ __forceinline__ void rlhf__rope_pair(float *u, float *v, float cosine,
                                                       float sine) {
    const float a = *u, b = *v;
    *u = fmaf(a, cosine, -(b * sine));
    *v = fmaf(b, cosine, a * sine);
}

#endif
