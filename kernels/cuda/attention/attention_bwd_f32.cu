// attention_bwd_f32.cu: backward attention in f32, with the same steps as attention_bwd_bf16.cu. A
// warp has 8 queries (for dq) or 8 keys (for dk and dv). Each lane processes one key or one query
// at a time.
#include "attention/attention_f32.h"

enum { OWN = RLHF__ATTN_OWN, STEP = RLHF__ATTN_OTHERS };

static __device__ __forceinline__ void put(float *p, const float *x) {
    *(float4 *)p = {x[0], x[1], x[2], x[3]};
    *(float4 *)(p + 4) = {x[4], x[5], x[6], x[7]};
}

template <int HD> static __device__ __forceinline__ void clear(float (*d)[HD / 32]) {
#pragma unroll
    for (int q = 0; q < OWN; q++)
#pragma unroll
        for (int i = 0; i < HD / 32; i++)
            d[q][i] = 0.0f;
}

// Multiplies the warp's first `rows` sums by scale and stores them in rows of x.
template <int HD>
static __device__ __forceinline__ void store(float *x, int64_t stride, const float (*d)[HD / 32],
                                             float scale, int rows, int head_dim) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int q = 0; q < OWN; q++)
#pragma unroll
        for (int i = 0; i < HD / 32; i++)
            if (q < rows && lane + 32 * i < head_dim)
                x[q * stride + lane + 32 * i] = fmaf(d[q][i], scale, 0.0f); // -0 becomes +0
}

// exp(score - lse) for the product `dot` of query and key.
static __device__ __forceinline__ float probability(const struct rlhf__attn_args &a, float dot,
                                                    float lse) {
    return rlhf__attn_exp2(fmaf(lse, -1.44269504f, rlhf__attn_score(a, dot)));
}

// A block computes WARPS * 8 queries of one head of one row of the batch.
template <int HD, int WARPS>
static __global__ void __launch_bounds__(WARPS * 32, 2) grad_q_f32(struct rlhf__attn_bwd_args b) {
    enum { TILE = WARPS * OWN, PITCH = HD + 4, ROOM = STEP * OWN + 2 * OWN };
    const struct rlhf__attn_args &a = b.a;
    DYN_SHARED(bytes);
    const int head = (int)blockIdx.y, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float *qs = (float *)bytes, *os = qs + TILE * PITCH, *ks = os + TILE * PITCH;
    float *vs = ks + STEP * PITCH, *p = vs + STEP * PITCH + warp * ROOM;
    float *lse = p + STEP * OWN, *delta = lse + OWN; // lse and delta of the warp's queries
    const int first = (a.tiles - 1 - (int)(blockIdx.x % (unsigned)a.tiles)) * TILE;
    struct rlhf__cuda_row row;
    if (!rlhf__cuda_row_check_training(a.rows, blockIdx.x / (unsigned)a.tiles, &row)) return;
    if (first >= row.nq) return; // skips the block's loads

    const int64_t col = (int64_t)head * a.head_dim, kv_col = (int64_t)(head / a.group) * a.head_dim;
    const struct rlhf__cuda_row queries = {0, 0, 0, 0, 0, 0, row.t0};
    rlhf__attn_load<HD>(qs, (const float *)a.q + col, a.q_stride, queries, first, TILE, 0, row.nq,
                        a.head_dim, a.wide);
    rlhf__attn_load<HD>(os, (const float *)b.dout + col, a.out_stride, queries, first, TILE, 0,
                        row.nq, a.head_dim, a.wide);
    const int own = first + warp * OWN;
    const int keys = a.causal ? row.start + rlhf__attn_min(first + TILE, row.nq) : row.nk;
    const int warp_keys = own >= row.nq ? 0
                          : a.causal    ? row.start + rlhf__attn_min(own + OWN, row.nq)
                                        : row.nk;
    if (lane < OWN) {
        const int there = own + lane < row.nq;
        const int64_t at = (int64_t)(row.t0 + own + lane) * a.heads + head;
        lse[lane] = there ? a.lse[at] : 0.0f;
        delta[lane] = there ? b.delta[at] : 0.0f;
    }
    float dq[OWN][HD / 32];
    clear<HD>(dq);
    const int begin = a.causal ? rlhf__attn_first(a, row.start + first + 1) : 0;
    const int warp_begin = a.causal ? rlhf__attn_first(a, row.start + own + 1) : 0;
    for (int j0 = begin / STEP * STEP; j0 < keys; j0 += STEP) {
        __syncthreads(); // the previous step is finished
        rlhf__attn_load<HD>(ks, (const float *)a.k + kv_col, a.kv_stride, row, j0, STEP, begin,
                            row.nk, a.head_dim, a.wide);
        rlhf__attn_load<HD>(vs, (const float *)a.v + kv_col, a.kv_stride, row, j0, STEP, begin,
                            row.nk, a.head_dim, a.wide);
        __syncthreads();
        if (j0 >= warp_keys || j0 + STEP <= warp_begin)
            continue; // skips products of the warp that are 0
        float s[OWN], dp[OWN];
        rlhf__attn_dots<HD>(s, qs + warp * OWN * PITCH, ks + lane * PITCH, a.head_dim);
        rlhf__attn_dots<HD>(dp, os + warp * OWN * PITCH, vs + lane * PITCH, a.head_dim);
#pragma unroll
        for (int q = 0; q < OWN; q++) {
            const int seen = a.causal ? row.start + own + q + 1 : row.nk;
            const int from = a.causal ? rlhf__attn_first(a, seen) : 0;
            const float w = probability(a, s[q], lse[q]);
            dp[q] = j0 + lane >= from && j0 + lane < seen
                        ? w * (dp[q] - delta[q]) * rlhf__attn_slope(a, s[q])
                        : 0.0f;
        }
        put(p + lane * OWN, dp); // its old contents were read before the barriers above
        __syncwarp();
        rlhf__attn_add<HD>(dq, p, ks, rlhf__attn_min(warp_keys - j0, STEP), a.head_dim);
    }
    store<HD>((float *)b.dq + (row.t0 + own) * a.q_stride + col, a.q_stride, dq, a.scale,
              row.nq - own, a.head_dim);
}

// A block computes WARPS * 8 keys of one key head of one row of the batch. If a tile of queries is
// incomplete, the missing queries add 0, because their q, dout and delta are 0.
template <int HD, int WARPS>
static __global__ void __launch_bounds__(WARPS * 32, 2) grad_kv_f32(struct rlhf__attn_bwd_args b) {
    enum { TILE = WARPS * OWN, PITCH = HD + 4, ROOM = 2 * STEP * OWN };
    const struct rlhf__attn_args &a = b.a;
    DYN_SHARED(bytes);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float *ks = (float *)bytes, *vs = ks + TILE * PITCH, *qs = vs + TILE * PITCH;
    float *os = qs + STEP * PITCH, *p = os + STEP * PITCH + warp * ROOM, *ds = p + STEP * OWN;
    const int first = (int)(blockIdx.x % (unsigned)a.tiles) * TILE;
    const uint32_t index = blockIdx.x / (unsigned)a.tiles;
    struct rlhf__cuda_row row;
    if (!rlhf__cuda_row_check_training(a.rows, index, &row)) return;
    if (first >= row.nq) return; // skips the block's loads

    const int64_t col = (int64_t)blockIdx.y * a.head_dim;
    const struct rlhf__cuda_row keys = {0, 0, 0, 0, 0, 0, row.t0};
    rlhf__attn_load<HD>(ks, (const float *)a.k + col, a.kv_stride, keys, first, TILE, 0, row.nq,
                        a.head_dim, a.wide);
    rlhf__attn_load<HD>(vs, (const float *)a.v + col, a.kv_stride, keys, first, TILE, 0, row.nq,
                        a.head_dim, a.wide);
    const int own = first + warp * OWN, pos = row.start + (a.causal ? first : 0);
    const int end = ((int)blockIdx.y + 1) * a.group;
    const int limit = a.window ? row.start + first + TILE - 1 + a.window : INT32_MAX;
    struct rlhf__attn_walk w;
    w.head = (int)blockIdx.y * a.group;
    rlhf__attn_walk_row<STEP>(&w, row, index, pos);
    float dk[OWN][HD / 32], dv[OWN][HD / 32];
    clear<HD>(dk);
    clear<HD>(dv);
    do {
        const struct rlhf__cuda_row queries = {0, 0, 0, 0, 0, 0, w.row.t0};
        const int from = w.pos - w.row.start, t = from + lane; // t: query of the lane
        const int64_t head_col = (int64_t)w.head * a.head_dim;
        __syncthreads(); // the previous step is finished
        rlhf__attn_load<HD>(qs, (const float *)a.q + head_col, a.q_stride, queries, from, STEP, 0,
                            w.row.nq, a.head_dim, a.wide);
        rlhf__attn_load<HD>(os, (const float *)b.dout + head_col, a.out_stride, queries, from, STEP,
                            0, w.row.nq, a.head_dim, a.wide);
        __syncthreads();
        if (own >= row.nq || (a.causal && w.pos + STEP <= row.start + own) ||
            rlhf__attn_first(a, w.pos + 1) >= row.start + own + OWN)
            continue; // skips products of the warp that are 0
        const int there = (unsigned)t < (unsigned)w.row.nq;
        const int64_t at = (int64_t)(w.row.t0 + t) * a.heads + w.head;
        const float lse = there ? a.lse[at] : 0.0f, delta = there ? b.delta[at] : 0.0f;
        float s[OWN], dp[OWN];
        rlhf__attn_dots<HD>(s, ks + warp * OWN * PITCH, qs + lane * PITCH, a.head_dim);
        rlhf__attn_dots<HD>(dp, vs + warp * OWN * PITCH, os + lane * PITCH, a.head_dim);
#pragma unroll
        for (int q = 0; q < OWN; q++) {
            const int key = row.start + own + q, pos_q = w.pos + lane;
            const int seen = !a.causal || (key <= pos_q && key >= rlhf__attn_first(a, pos_q + 1));
            const float slope = rlhf__attn_slope(a, s[q]);
            s[q] = seen && there ? probability(a, s[q], lse) : 0.0f;
            dp[q] = s[q] * (dp[q] - delta) * slope;
        }
        put(p + lane * OWN, s); // its old contents were read before the barriers above
        put(ds + lane * OWN, dp);
        __syncwarp();
        rlhf__attn_add<HD>(dv, p, os, STEP, a.head_dim);
        rlhf__attn_add<HD>(dk, ds, qs, STEP, a.head_dim);
    } while (rlhf__attn_walk_next<STEP>(&w, a.rows, row, index, pos, limit, end));
    const int64_t at = (row.t0 + own) * a.kv_stride + col;
    store<HD>((float *)b.dk + at, a.kv_stride, dk, a.scale, row.nq - own, a.head_dim);
    store<HD>((float *)b.dv + at, a.kv_stride, dv, 1.0f, row.nq - own, a.head_dim);
}

// The number of bytes of shared memory that the kernels need.
template <int HD, int WARPS> static size_t room() {
    return (2 * (WARPS * OWN + STEP) * (HD + 4) + WARPS * 2 * STEP * OWN) * sizeof(float);
}

template <int HD, int WARPS>
static rlhf_status launch(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b) {
    enum { TILE = WARPS * OWN, THREADS = WARPS * 32 };
    const size_t bytes = room<HD, WARPS>();
    const unsigned tiles = (b->a.rows.max_q + TILE - 1) / TILE;
    b->a.tiles = tiles ? (int32_t)tiles : 1;
    const unsigned x = (unsigned)b->a.tiles * b->a.rows.n;
    RLHF_TRY(rlhf__cuda_check(cu, "grad_q_f32", ALLOW_SHARED((grad_q_f32<HD, WARPS>), bytes)));
    RLHF_TRY(rlhf__cuda_check(cu, "grad_kv_f32", ALLOW_SHARED((grad_kv_f32<HD, WARPS>), bytes)));
    RUN(cu, (grad_q_f32<HD, WARPS>), dim3(x, (unsigned)b->a.heads), dim3(THREADS), bytes, *b);
    RUN(cu, (grad_kv_f32<HD, WARPS>), dim3(x, (unsigned)(b->a.heads / b->a.group)), dim3(THREADS),
        bytes, *b);
    return RLHF_OK;
}

// With heads of 256, a block of four warps does not fit in 99 KiB. The number of warps does not
// change the bits.
template <int HD> static rlhf_status run(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b) {
    if constexpr (HD > 128)
        if (room<HD, RLHF__ATTN_WARPS>() > (size_t)cu->shared_most) return launch<HD, 1>(cu, b);
    return launch<HD, RLHF__ATTN_WARPS>(cu, b);
}

rlhf_status rlhf__cuda_attention_bwd_f32(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b) {
    const int32_t d = b->a.head_dim;
    return d <= 32    ? run<32>(cu, b)
           : d <= 64  ? run<64>(cu, b)
           : d <= 96  ? run<96>(cu, b)
           : d <= 128 ? run<128>(cu, b)
                      : run<256>(cu, b);
}
