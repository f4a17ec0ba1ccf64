// dist_cut.h: the kept set of top-k and top-p of one row, on the device.
//
// The kept set is the beginning of the ranking, so one number describes it: the rank of its last
// id. Histograms find this rank. Each step divides a range of ranks into bins, adds up the integer
// weights in each bin, and continues with the bin that contains the wanted rank. When few ids are
// left, they are compared with each other. Each step reads the row once; usually two or three steps
// are enough. The result does not depend on the order of threads.
#ifndef RLHF_CUDA_DIST_CUT_H
#define RLHF_CUDA_DIST_CUT_H

#include "head/dist.h"

// The range of ranks that contains the last kept id. `need` is the total weight that the kept ids
// of this range must reach.
struct rlhf__cut_search {
    uint64_t low, high, need;
    double share; // fraction of the total; 0: `need` is already known
};

// share times total, at least 1 and at most total.
static __device__ __forceinline__ uint64_t rlhf__cut_need(double share, uint64_t total) {
    const double want = share * (double)total;
    uint64_t need = (uint64_t)want;
    need += (double)need < want;
    return need < 1 ? 1 : need > total ? total : need;
}

// Add w to bin b, which consists of two words. If an addition overflows the low word, the same
// thread adds the carry to the high word.
static __device__ __forceinline__ void rlhf__cut_count(struct rlhf__dist_shared &s, unsigned b,
                                                       uint64_t w) {
    const unsigned low = (unsigned)w;
    const unsigned carry = low && atomicAdd(&s.low[b], low) + low < low;
    const unsigned high = (unsigned)(w >> 32) + carry;
    if (high) atomicAdd(&s.high[b], high);
}

// Counts the ids in the range whose weight is not 0. If their number is at most the number of
// threads in the block, sets *found to the wanted rank and returns true. Otherwise returns false.
template <class Weight>
static __device__ __forceinline__ bool
rlhf__cut_compare(struct rlhf__dist_shared &s, const struct rlhf__dist_row &r,
                  const struct rlhf__cut_search &c, Weight weight, uint64_t *found) {
    const int id_bits = rlhf__dist_id_bits(r.n);
    if (threadIdx.x == 0) s.candidates = 0;
    __syncthreads();
    rlhf__dist_each(r, [&](int32_t id, float z) {
        const uint64_t rank = rlhf__dist_rank(rlhf__dist_key(z), id, r.n, id_bits);
        if (rank < c.low || rank > c.high) return;
        const uint64_t w = weight(z);
        if (!w) return;
        const unsigned at = atomicAdd(&s.candidates, 1u);
        if (at < blockDim.x) s.rank[at] = rank, s.weight[at] = w;
    });
    __syncthreads();
    const unsigned n = s.candidates;
    if (n > blockDim.x) return false;
    if (threadIdx.x < n) {
        uint64_t total = 0, before = 0;
        for (unsigned i = 0; i < n; i++) {
            total += s.weight[i];
            if (s.rank[i] > s.rank[threadIdx.x]) before += s.weight[i];
        }
        const uint64_t need = c.share > 0.0 ? rlhf__cut_need(c.share, total) : c.need;
        if (before < need && need <= before + s.weight[threadIdx.x]) s.found = s.rank[threadIdx.x];
    }
    __syncthreads();
    *found = s.found;
    return true;
}

// The inclusive prefix sum over the threads of the block, and the total. Uses one barrier.
static __device__ __forceinline__ uint64_t rlhf__cut_scan(struct rlhf__dist_shared &s, uint64_t v,
                                                          uint64_t *total) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int d = 1; d < 32; d <<= 1) {
        const uint64_t o = __shfl_up_sync(~0u, v, (unsigned)d);
        v += lane >= (unsigned)d ? o : 0;
    }
    if (lane == 31) s.scan[warp] = v;
    __syncthreads();
    uint64_t before = 0, all = 0;
    for (unsigned w = 0; w < blockDim.x / 32; w++) {
        before += w < warp ? s.scan[w] : 0;
        all += s.scan[w];
    }
    *total = all;
    return before + v;
}

// Reduces the range to one of its bins. There are four bins per thread.
template <class Weight>
static __device__ __forceinline__ void rlhf__cut_narrow(struct rlhf__dist_shared &s,
                                                        const struct rlhf__dist_row &r,
                                                        struct rlhf__cut_search *c, Weight weight) {
    const int id_bits = rlhf__dist_id_bits(r.n);
    const unsigned bins = 4 * blockDim.x, mine = bins - 4 - 4 * threadIdx.x; // thread 0: highest
    const uint64_t low = c->low, high = c->high;
    int shift = 0;
    for (int b = 32; b; b >>= 1)
        if ((high - low) >> (shift + b - 1) >= bins) shift += b;
    for (unsigned j = 0; j < 4; j++)
        s.low[mine + j] = s.high[mine + j] = 0;
    __syncthreads();
    rlhf__dist_each(r, [&](int32_t id, float z) {
        const uint64_t rank = rlhf__dist_rank(rlhf__dist_key(z), id, r.n, id_bits);
        if (rank < low || rank > high) return;
        rlhf__cut_count(s, (unsigned)((rank - low) >> shift), weight(z));
    });
    __syncthreads();
    uint64_t bin[4], own = 0, total;
    for (unsigned j = 0; j < 4; j++)
        own += bin[j] = (uint64_t)s.high[mine + j] << 32 | s.low[mine + j];
    const uint64_t reached = rlhf__cut_scan(s, own, &total);
    if (c->share > 0.0) {
        c->need = rlhf__cut_need(c->share, total);
        c->share = 0.0;
    }
    uint64_t above = reached - own;
    if (above < c->need && c->need <= reached) {
        unsigned j = 3;
        for (; j > 0 && above + bin[j] < c->need; j--)
            above += bin[j];
        s.bin = mine + j;
        s.above = above;
    }
    __syncthreads();
    c->need -= s.above;
    c->low = low + ((uint64_t)s.bin << shift);
    const uint64_t last = c->low + (((uint64_t)1 << shift) - 1);
    c->high = last < high ? last : high; // leaves out ranks above the largest logit
}

// Take ids from the range of c, in ranking order, until their total weight reaches the weight that
// c requires (`share` or `need`). Returns the rank of the last id taken. weight(logit) is the
// weight of an id.
template <class Weight>
static __device__ __forceinline__ uint64_t rlhf__cut_find(struct rlhf__dist_shared &s,
                                                          const struct rlhf__dist_row &r,
                                                          struct rlhf__cut_search c,
                                                          Weight weight) {
    uint64_t found = 0;
    if ((unsigned)r.n > blockDim.x) rlhf__cut_narrow(s, r, &c, weight); // to save a pass
    while (!rlhf__cut_compare(s, r, c, weight, &found))
        rlhf__cut_narrow(s, r, &c, weight);
    return found;
}

// True if min-p keeps a logit with this key. min-p then also keeps all logits with larger keys.
static __device__ __forceinline__ bool rlhf__cut_likely(const struct rlhf__dist_rule &rule,
                                                        float max, unsigned key) {
    const double below = (double)rlhf__dist_unkey(key) - (double)max;
    return !(below * (double)rule.it < rule.least);
}

// The lowest rank that min-p keeps. `top` is the key of the largest logit, which must be finite.
static __device__ __forceinline__ uint64_t rlhf__cut_least(const struct rlhf__dist_row &r,
                                                           const struct rlhf__dist_rule &rule,
                                                           unsigned top) {
    const float max = rlhf__dist_unkey(top);
    // Start from an estimate that is within a few floats of the smallest kept logit. The estimate
    // is not below -3.4e38, because no logit is.
    const double guess = (double)max + rule.least / (double)rule.it;
    unsigned key = rlhf__dist_key(guess < -3.4e38 ? -3.4e38f : (float)guess);
    while (key < top && !rlhf__cut_likely(rule, max, key))
        key++;
    while (key > RLHF__DIST_KEY_LOW + 1 && rlhf__cut_likely(rule, max, key - 1))
        key--;
    return rlhf__dist_rank(key, r.n - 1, r.n, rlhf__dist_id_bits(r.n));
}

// The rank of the last id of the row that top-k and top-p keep, in the form of rlhf__cut_of.
static __device__ __forceinline__ uint64_t rlhf__cut_top(struct rlhf__dist_shared &s,
                                                         const struct rlhf__dist_row &r,
                                                         const struct rlhf__dist_rule &rule,
                                                         unsigned top, unsigned low) {
    const int id_bits = rlhf__dist_id_bits(r.n);
    struct rlhf__cut_search c = {rlhf__dist_rank(low, r.n - 1, r.n, id_bits),
                                 rlhf__dist_rank(top, 0, r.n, id_bits), 0, 0.0};
    uint64_t cut = 0;
    if (top >= RLHF__DIST_KEY_INF || top <= RLHF__DIST_KEY_LOW) return 0;
    if (rule.top_k > 0) {
        c.need = (uint64_t)rule.top_k;
        cut = rlhf__cut_find(s, r, c, [](float) { return (uint64_t)1; });
        c.low = cut;
    }
    if (rule.top_p >= 1.0) return cut;
    const float max = rlhf__dist_unkey(top), it = rule.it;
    const float one = rlhf__pow2(rlhf__dist_weight_bits(r.n));
    c.share = rule.top_p;
    // Weights far below the largest one are 0. Do not use bins for them.
    const float floor = max - (float)(rlhf__dist_weight_bits(r.n) + 2) * 0.6931472f / it;
    const unsigned key = rlhf__dist_key(floor);
    // If `floor` is so near to the largest logit that both are the same float, no logit lies
    // between them. The range then keeps its lower bound, which gives the same result.
    const uint64_t least =
        key < top ? rlhf__dist_rank(key, r.n - 1, r.n, id_bits) : 0; // skips the rank
    c.low = least > c.low ? least : c.low;
    return rlhf__cut_find(s, r, c, [=](float z) { return rlhf__dist_weight(z, max, it, one); });
}

// Returns the rank of the last id of the row that `rule` keeps, or 0 if `rule` keeps all ids. `top`
// and `low` are the largest and the smallest logit of the row, as keys (rlhf__dist_key). If the
// largest logit is infinite or NaN, the row is not ranked, and all ids are kept.
static __device__ __forceinline__ uint64_t rlhf__cut_of(struct rlhf__dist_shared &s,
                                                        const struct rlhf__dist_row &r,
                                                        const struct rlhf__dist_rule &rule,
                                                        unsigned top, unsigned low) {
    const uint64_t cut = rlhf__cut_top(s, r, rule, top, low);
    if (!rule.has_least || top >= RLHF__DIST_KEY_INF || top <= RLHF__DIST_KEY_LOW) return cut;
    const uint64_t least = rlhf__cut_least(r, rule, top);
    return least > cut ? least : cut;
}

// True if the token `id`, whose logit is z, is kept.
static __device__ __forceinline__ bool rlhf__cut_keeps(uint64_t cut, float z, int32_t id, int32_t n,
                                                       int id_bits) {
    return cut == 0 || rlhf__dist_rank(rlhf__dist_key(z), id, n, id_bits) >= cut;
}

#endif
