// attention_f32.cu: attention forward in f32. A warp has 8 queries; keys come in tiles of 32.
#include "attention/attention_f32.h"

enum { OWN = RLHF__ATTN_OWN, KEYS = RLHF__ATTN_OTHERS };

namespace {
// m and l are for query lane / 4: the largest score in units of log2, and the sum of exponentials.
// During a segment, the sum has only this lane's keys; at the end of the segment, it has all keys.
// o has columns lane + 32 i of the output for all 8 queries.
template <int HD> struct state { float m, l, o[OWN][HD / 32]; };
} // namespace

template <int HD> static __device__ __forceinline__ void clear(struct state<HD> &x) {
    x.m = -INFINITY;
    x.l = 0.0f;
#pragma unroll
    for (int q = 0; q < OWN; q++)
#pragma unroll
        for (int i = 0; i < HD / 32; i++)
            x.o[q][i] = 0.0f;
}

// Turn the scores p[key][query] of a tile, which starts at j0, into probabilities. The lane's query
// sees keys `from` .. `seen` - 1. Sets fade[query] to the factor by which the sums so far must be
// multiplied.
template <int HD>
static __device__ __forceinline__ void softmax(struct state<HD> &x, float *p, float *fade, int j0,
                                               int from, int seen,
                                               const struct rlhf__attn_args &a) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float s[KEYS / 4], top = x.m;
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++) {
        const int j = t + 4 * i;
        s[i] = j0 + j >= from && j0 + j < seen ? rlhf__attn_score(a, p[j * OWN + g]) : -INFINITY;
        top = fmaxf(top, s[i]);
    }
    top = rlhf__attn_quad_max(top);
    const float base = top == -INFINITY ? 0.0f : top, f = rlhf__attn_exp2(x.m - base);
    x.m = top;
    x.l *= f;
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++)
        x.l += p[(t + 4 * i) * OWN + g] = rlhf__attn_exp2(s[i] - base);
    if (t == 0) fade[g] = f;
}

// Merge the state x of the current segment with the merged state of all earlier segments, which is
// in shared memory. Called at the end of every segment except the first that the warp sees. was[8]
// and now[8] are scratch memory for the scale factors.
template <int HD, int THREADS>
static __device__ __forceinline__ void merge(struct state<HD> &x, const float *kept, float *was,
                                             float *now) {
    const int lane = (int)threadIdx.x % 32;
    const float m = kept[0], top = fmaxf(m, x.m);
    const float f = rlhf__attn_exp2(m - top), h = rlhf__attn_exp2(x.m - top);
    x.l = fmaf(x.l, h, kept[THREADS] * f);
    x.m = top;
    __syncwarp(); // memory order: the old factors have been read
    if (lane % 4 == 0) was[lane / 4] = f, now[lane / 4] = h;
    __syncwarp();
#pragma unroll
    for (int q = 0; q < OWN; q++)
#pragma unroll
        for (int i = 0; i < HD / 32; i++)
            x.o[q][i] = fmaf(x.o[q][i], now[q], kept[(2 + q * (HD / 32) + i) * THREADS] * was[q]);
}
template <int HD, int THREADS>
static __device__ __forceinline__ void keep(float *kept, const struct state<HD> &x) {
    kept[0] = x.m;
    kept[THREADS] = x.l;
#pragma unroll
    for (int q = 0; q < OWN; q++)
#pragma unroll
        for (int i = 0; i < HD / 32; i++)
            kept[(2 + q * (HD / 32) + i) * THREADS] = x.o[q][i];
}

// A block computes WARPS * 8 queries of one head of one row of the batch. Shared memory has the
// queries, a tile of keys, a tile of values, and the probabilities and factors of each warp. If
// there are several segments, it also has the saved state of each thread.
template <int HD, int WARPS>
static __global__ void __launch_bounds__(WARPS * 32, 3) attend_f32(struct rlhf__attn_args a) {
    enum { THREADS = WARPS * 32, PITCH = HD + 4, ROOM = KEYS * OWN + 2 * OWN };
    DYN_SHARED(bytes);
    const int head = (int)blockIdx.y, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float *qs = (float *)bytes, *ks = qs + WARPS * OWN * PITCH, *vs = ks + KEYS * PITCH;
    float *p = vs + KEYS * PITCH + warp * ROOM, *was = p + KEYS * OWN, *now = was + OWN;
    float *kept = vs + KEYS * PITCH + WARPS * ROOM + threadIdx.x;
    const int first = (a.tiles - 1 - (int)(blockIdx.x % (unsigned)a.tiles)) * WARPS * OWN;
    struct rlhf__cuda_row row;
    if (!rlhf__cuda_row_check(a.rows, blockIdx.x / (unsigned)a.tiles, &row)) return; // all threads
    if (first >= row.nq) return; // skips the block's loads

    const int64_t col = (int64_t)head * a.head_dim, kv_col = (int64_t)(head / a.group) * a.head_dim;
    const struct rlhf__cuda_row queries = {0, 0, 0, 0, 0, 0, row.t0};
    rlhf__attn_load<HD>(qs, (const float *)a.q + col, a.q_stride, queries, first, WARPS * OWN, 0,
                        row.nq, a.head_dim, a.wide);
    const int own = first + warp * OWN, last = rlhf__attn_min(own + OWN, row.nq);
    const int block_last = rlhf__attn_min(first + WARPS * OWN, row.nq);
    const int keys = a.causal ? row.start + block_last : row.nk; // keys that the block sees
    const int begin =
        a.causal ? rlhf__attn_first(a, row.start + first + 1) : 0; // the first of them
    const int warp_begin = a.causal ? rlhf__attn_first(a, row.start + own + 1) : 0;
    const int warp_keys = own >= row.nq ? 0 : a.causal ? row.start + last : row.nk;
    const int mine = own + lane / 4;
    const int seen = mine >= row.nq ? 0 : a.causal ? row.start + mine + 1 : row.nk;
    const int from = a.causal ? rlhf__attn_first(a, seen) : 0;
    struct state<HD> x;
    clear(x);
    for (int j0 = begin / KEYS * KEYS; j0 < keys; j0 += KEYS) {
        __syncthreads(); // the previous tile is finished
        rlhf__attn_load<HD>(ks, (const float *)a.k + kv_col, a.kv_stride, row, j0, KEYS, begin,
                            row.nk, a.head_dim, a.wide);
        rlhf__attn_load<HD>(vs, (const float *)a.v + kv_col, a.kv_stride, row, j0, KEYS, begin,
                            row.nk, a.head_dim, a.wide);
        __syncthreads();
        if (j0 >= warp_keys || j0 + KEYS <= warp_begin) continue; // the whole warp continues
        float s[OWN];
        rlhf__attn_dots<HD>(s, qs + warp * OWN * PITCH, ks + lane * PITCH, a.head_dim);
        *(float4 *)(p + lane * OWN) = {s[0], s[1], s[2], s[3]};
        *(float4 *)(p + lane * OWN + 4) = {s[4], s[5], s[6], s[7]};
        __syncwarp();
        softmax(x, p, was, j0, from, seen, a);
        __syncwarp();
#pragma unroll
        for (int q = 0; q < OWN; q++)
#pragma unroll
            for (int i = 0; i < HD / 32; i++)
                x.o[q][i] *= was[q];
        const int end = j0 + KEYS, done = end >= warp_keys;
        rlhf__attn_add<HD>(x.o, p, vs, done ? warp_keys - j0 : KEYS, a.head_dim);
        if (!done && end % RLHF__ATTN_SEGMENT)
            continue; // p and `was` are read before the next barrier
        x.l = rlhf__attn_quad_sum(x.l);
        if (j0 / RLHF__ATTN_SEGMENT > warp_begin / RLHF__ATTN_SEGMENT)
            merge<HD, THREADS>(x, kept, was, now);
        if (done) continue;
        keep<HD, THREADS>(kept, x);
        clear(x);
    }
    const float inv = 1.0f / x.l;
#pragma unroll
    for (int q = 0; q < OWN; q++) {
        const float f = __shfl_sync(~0u, inv, q * 4);
        float *out = (float *)a.out + (int64_t)(row.t0 + own + q) * a.out_stride + col;
#pragma unroll
        for (int i = 0; i < HD / 32; i++)
            if (own + q < row.nq && lane + 32 * i < a.head_dim)
                out[lane + 32 * i] = fmaf(x.o[q][i], f, 0.0f); // -0 becomes +0
    }
    if (a.lse && lane % 4 == 0 && mine < row.nq)
        a.lse[(int64_t)(row.t0 + mine) * a.heads + head] = fmaf(x.m, 0.693147181f, rlhf__logf(x.l));
}

// The number of bytes of shared memory that attend_f32<HD, WARPS> needs.
template <int HD, int WARPS> static size_t room(const struct rlhf__attn_args *a) {
    size_t floats = (WARPS * OWN + 2 * KEYS) * (HD + 4) + WARPS * (KEYS * OWN + 2 * OWN);
    if (a->rows.max_k > RLHF__ATTN_SEGMENT) floats += WARPS * 32 * (2 + OWN * (HD / 32));
    return floats * sizeof(float);
}

template <int HD, int WARPS>
static rlhf_status launch(struct rlhf__cuda *cu, struct rlhf__attn_args *a) {
    const unsigned queries = WARPS * OWN, n = (a->rows.max_q + queries - 1) / queries;
    const size_t bytes = room<HD, WARPS>(a);
    RLHF_TRY(rlhf__cuda_check(cu, "attend_f32", ALLOW_SHARED((attend_f32<HD, WARPS>), bytes)));
    a->tiles = n ? (int32_t)n : 1;
    RUN(cu, (attend_f32<HD, WARPS>), dim3((unsigned)a->tiles * a->rows.n, (unsigned)a->heads),
        dim3(WARPS * 32), bytes, *a);
    return RLHF_OK;
}

// With heads of 256, a block of four warps does not fit in 99 KiB. The number of warps does not
// change the bits.
template <int HD> static rlhf_status run(struct rlhf__cuda *cu, struct rlhf__attn_args *a) {
    const bool fit = room<HD, RLHF__ATTN_WARPS>(a) <= (size_t)cu->shared_most;
    return a->rows.max_q <= OWN || !fit ? launch<HD, 1>(cu, a)
                                        : launch<HD, RLHF__ATTN_WARPS>(cu, a);
}

rlhf_status rlhf__cuda_attention_f32(struct rlhf__cuda *cu, struct rlhf__attn_args *a) {
    const int32_t d = a->head_dim;
    return d <= 32    ? run<32>(cu, a)
           : d <= 64  ? run<64>(cu, a)
           : d <= 96  ? run<96>(cu, a)
           : d <= 128 ? run<128>(cu, a)
                      : run<256>(cu, a);
}
