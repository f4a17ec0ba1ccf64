// dist.h: the distribution over one row of logits, on the device: softmax sums in a fixed tree, and
// the kept set of top-k and top-p. There is one block per row; all of its threads call every
// function here.
//
// The ids of a thread depend only on the vocabulary: each warp has one contiguous part of the row,
// and its lanes take turns with four ids each. So the bits of a row depend only on the row, and are
// the same in lm_head and lm_sample. The weights for ranking and sampling are integers (fixed
// point), so their sums do not depend on the order.
#ifndef RLHF_CUDA_DIST_H
#define RLHF_CUDA_DIST_H

#include "machine/context.h"
#include "machine/mathf.h"

enum { RLHF__DIST_THREADS = 512, RLHF__DIST_WARPS = RLHF__DIST_THREADS / 32 };

// The number of threads in a block for rows of n logits.
static inline unsigned rlhf__dist_threads(int32_t n) {
    return n <= 256 ? 32 : n <= 4096 ? 128 : RLHF__DIST_THREADS;
}

// An rlhf_dist in the form that kernels use; rlhf__dist_rule makes it.
struct rlhf__dist_rule {
    double top_p;  // 1 = off
    double least;  // log of min_p; has_least: 1 if min_p is used
    float it;      // inverse temperature, 1 when greedy
    int32_t top_k; // 0 = off
    int32_t greedy, has_least;
};

// A row of n logits. The logits of ids outside of the support count as -inf. If support is NULL,
// all ids are inside.
struct rlhf__dist_row {
    const float *z; // aligned to 16 bytes; readable up to a multiple of four
    const uint32_t *support;
    int32_t n;
};

// The shared memory of a block. Between two barriers, a member is either written or read, but not
// both.
struct rlhf__dist_shared {
    unsigned key[RLHF__DIST_WARPS][3]; // largest and smallest logit, largest logit of the reference
    double sum[RLHF__DIST_WARPS][4];
    uint64_t scan[RLHF__DIST_WARPS];
    unsigned low[4 * RLHF__DIST_THREADS], high[4 * RLHF__DIST_THREADS]; // histogram, as two words
    uint64_t rank[RLHF__DIST_THREADS], weight[RLHF__DIST_THREADS];      // candidates
    unsigned candidates, bin;
    uint64_t above, found;
};

// ---- order of logits ----

// Unsigned keys that are ordered like the floats. -0 counts as +0, and NaN is above all floats.
static __device__ __forceinline__ unsigned rlhf__dist_key(float z) {
    const unsigned u = __float_as_uint(z + 0.0f);
    if (z != z) return ~0u;
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}
static __device__ __forceinline__ float rlhf__dist_unkey(unsigned key) {
    return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}
enum { RLHF__DIST_KEY_INF = 0xff800000u, RLHF__DIST_KEY_LOW = 0x007fffffu }; // keys of +inf, -inf

// The number of bits of an id below n.
static __device__ __forceinline__ int rlhf__dist_id_bits(int32_t n) {
    int bits = 0;
    while (bits < 31 && (n - 1) >> bits)
        bits++;
    return bits;
}

// The rank of a token, as a number. A larger logit has a larger rank. If logits are equal, the
// lowest id has the largest rank. So all ranks of a row are different.
static __device__ __forceinline__ uint64_t rlhf__dist_rank(unsigned key, int32_t id, int32_t n,
                                                           int id_bits) {
    return (uint64_t)key << id_bits | (unsigned)(n - 1 - id);
}

// ---- iterating over a row ----

static __device__ __forceinline__ bool rlhf__dist_in(const struct rlhf__dist_row &r, int32_t id) {
    return !r.support || (r.support[id / 32] >> id % 32 & 1);
}

// The logit of an id; -inf outside of the support.
static __device__ __forceinline__ float rlhf__dist_at(const struct rlhf__dist_row &r, int32_t id) {
    return rlhf__dist_in(r, id) ? r.z[id] : -__uint_as_float(0x7f800000u);
}

// Set v[4] to the logits of ids 4 c .. 4 c + 3, or to -inf for ids outside of the support. All four
// ids must be in the row.
static __device__ __forceinline__ void rlhf__dist_load(const struct rlhf__dist_row &r, int32_t c,
                                                       float v[4]) {
    const float4 q = __ldg((const float4 *)(r.z + 4 * c));
    v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    if (!r.support) return;
    const uint32_t bits = r.support[c / 8] >> 4 * (c % 8);
    for (int j = 0; j < 4; j++)
        v[j] = bits >> j & 1 ? v[j] : -__uint_as_float(0x7f800000u);
}

// Like rlhf__dist_load, but ids may be past the end of the row; their values are -inf.
static __device__ __forceinline__ void rlhf__dist_load_end(const struct rlhf__dist_row &r,
                                                           int32_t c, float v[4]) {
    for (int j = 0; j < 4; j++)
        v[j] = 4 * c + j < r.n ? rlhf__dist_at(r, 4 * c + j) // only for speed: they come last
                               : -__uint_as_float(0x7f800000u);
}

// The groups of four ids that one warp of a block processes.
struct rlhf__dist_span {
    int32_t from, to;
};
static __device__ __forceinline__ struct rlhf__dist_span rlhf__dist_part(struct rlhf__dist_span all,
                                                                         int warp, int warps) {
    const int32_t share = (all.to - all.from + warps - 1) / warps, from = all.from + warp * share;
    const int32_t to = from + share < all.to ? from + share : all.to; // less for the last warp
    return {from < all.to ? from : all.to, to};
}
static __device__ __forceinline__ struct rlhf__dist_span rlhf__dist_own(int32_t n) {
    return rlhf__dist_part({0, (n + 3) / 4}, (int)threadIdx.x / 32, (int)blockDim.x / 32);
}

// Call f(id, logit) for each id of this thread, in order. `UNROLL` is the number of loads of logits
// that are in flight at the same time.
template <int UNROLL = 1, class F>
static __device__ __forceinline__ void rlhf__dist_each(const struct rlhf__dist_row &r, F f) {
    const struct rlhf__dist_span own = rlhf__dist_own(r.n);
    const int32_t whole = own.to < r.n / 4 ? own.to : r.n / 4;
    int32_t c = own.from + (int32_t)threadIdx.x % 32;
#pragma unroll(UNROLL)
    for (; c < whole; c += 32) {
        float v[4];
        rlhf__dist_load(r, c, v);
#pragma unroll
        for (int j = 0; j < 4; j++)
            f(4 * c + j, v[j]);
    }
    for (int32_t id = 4 * c; c < own.to && id < r.n; id++) // at the end of the row
        f(id, rlhf__dist_at(r, id));
}

// Like rlhf__dist_each, for two rows: calls f(id, logit, reference's logit).
template <int UNROLL = 1, class F>
static __device__ __forceinline__ void rlhf__dist_each_pair(const struct rlhf__dist_row &r,
                                                            const float *ref, F f) {
    const struct rlhf__dist_span own = rlhf__dist_own(r.n);
    const int32_t whole = own.to < r.n / 4 ? own.to : r.n / 4;
    int32_t c = own.from + (int32_t)threadIdx.x % 32;
#pragma unroll(UNROLL)
    for (; c < whole; c += 32) {
        float v[4];
        rlhf__dist_load(r, c, v);
        const float4 q = __ldg((const float4 *)(ref + 4 * c));
        f(4 * c, v[0], q.x);
        f(4 * c + 1, v[1], q.y);
        f(4 * c + 2, v[2], q.z);
        f(4 * c + 3, v[3], q.w);
    }
    for (int32_t id = 4 * c; c < own.to && id < r.n; id++)
        f(id, rlhf__dist_at(r, id), ref[id]);
}

// ---- over the block ----

static __device__ __forceinline__ unsigned rlhf__warp_umax(unsigned v) {
    for (int m = 16; m; m >>= 1) {
        const unsigned o = __shfl_xor_sync(~0u, v, m);
        v = o > v ? o : v;
    }
    return v;
}

// Every thread gets the maximum of a, the minimum of b and the maximum of c over the block. The
// function uses one barrier.
static __device__ __forceinline__ void rlhf__dist_extremes(struct rlhf__dist_shared &s, unsigned *a,
                                                           unsigned *b, unsigned *c) {
    const int warp = (int)threadIdx.x / 32;
    const unsigned x = rlhf__warp_umax(*a), y = rlhf__warp_umax(~*b), z = rlhf__warp_umax(*c);
    if (threadIdx.x % 32 == 0) s.key[warp][0] = x, s.key[warp][1] = y, s.key[warp][2] = z;
    __syncthreads();
    unsigned top = s.key[0][0], low = s.key[0][1], ref = s.key[0][2];
    for (int w = 1; w < (int)blockDim.x / 32; w++) {
        top = s.key[w][0] > top ? s.key[w][0] : top;
        low = s.key[w][1] > low ? s.key[w][1] : low;
        ref = s.key[w][2] > ref ? s.key[w][2] : ref;
    }
    *a = top, *b = ~low, *c = ref;
}

// Every thread gets the sums of v[n] over the block. The warps are added in order. The function
// uses one barrier.
template <int N>
static __device__ __forceinline__ void rlhf__dist_sum(struct rlhf__dist_shared &s, double v[N]) {
    for (int i = 0; i < N; i++)
        v[i] = rlhf__warp_sum(v[i]);
    for (int i = 0; i < N; i++)
        if (threadIdx.x % 32 == 0) s.sum[threadIdx.x / 32][i] = v[i];
    __syncthreads();
    for (int i = 0; i < N; i++) {
        v[i] = s.sum[0][i];
        for (int w = 1; w < (int)blockDim.x / 32; w++)
            v[i] += s.sum[w][i];
    }
}

// ---- weights ----

// Returns the logit, shifted by the maximum and scaled. This is the log of the unnormalized
// probability. A large negative number replaces log 0, because the result may be multiplied by a
// probability of 0. A NaN stays a NaN.
static __device__ __forceinline__ float rlhf__dist_log_weight(float z, float max, float it) {
    const float a = (z - max) * it;
    return a < -1e30f ? -1e30f : a;
}

// The log-prob of an id in the kept set.
static __device__ __forceinline__ float rlhf__dist_logp(float z, float max, float it,
                                                        float log_sum) {
    return (z - max) * it - log_sum;
}

// Returns the number of fraction bits of the integer weights. With b fraction bits, the weight of
// an id is e^a 2^b, rounded down, where a <= 0. b is chosen so that the sum of n weights fits in 62
// bits.
static __device__ __forceinline__ int rlhf__dist_weight_bits(int32_t n) {
    return 61 - rlhf__dist_id_bits(n);
}
static __device__ __forceinline__ uint64_t rlhf__dist_weight(float z, float max, float it,
                                                             float one) {
    return (uint64_t)(rlhf__expf(rlhf__dist_log_weight(z, max, it)) * one);
}

#endif
