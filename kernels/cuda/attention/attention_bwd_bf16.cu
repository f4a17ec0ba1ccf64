// attention_bwd_bf16.cu: backward attention in bf16. A block of the dq kernel has a tile of queries
// and iterates over their keys. A block of the kernel for dk and dv has a tile of keys and iterates
// over the queries that see them. A tile has 64 rows, or 32 for heads wider than 128; 16 per warp.
//
// Keys are processed in the order of their logical index, and queries in the order of their
// position. So the terms of a row are added in the same order with and without a shared prefix.
#include "attention/attention_bf16.h"

namespace {
// Wide heads have smaller tiles, so that a block needs less than 99 KiB of shared memory. A block
// of the kernel for dk and dv computes COLS columns of them, because its sums are in registers.
template <int HD> struct shape {
    enum { WIDE = HD > 128, TILE = WIDE ? 32 : 64, STEP = WIDE ? 16 : 32 };
    enum { THREADS = TILE * 2, COLS = WIDE ? HD / 2 : HD };
};

// Shared memory: two tiles of the block's own rows, and two stages. Each stage has two steps of the
// rows that the block iterates over.
template <int HD> struct room {
    enum { PITCH = HD + 8, OWN = shape<HD>::TILE * PITCH, OTHER = shape<HD>::STEP * PITCH };
    enum { ALL = 2 * OWN + 4 * OTHER };
};
} // namespace

// exp(score - lse) for the product `dot` of query and key; lse is in units of log2.
static __device__ __forceinline__ float probability(const struct rlhf__attn_args &a, float dot,
                                                    float lse_log2) {
    if (a.cap_log2 != 0.0f) return rlhf__ex2(rlhf__attn_score(a, dot) - lse_log2);
    return rlhf__ex2(fmaf(dot, a.scale_log2, -lse_log2));
}
static __device__ __forceinline__ float in_log2(float lse) { return lse * 1.44269504f; }

template <int COLS> static __device__ __forceinline__ void clear(float (*d)[4]) {
#pragma unroll
    for (int n = 0; n < COLS / 8; n++)
        d[n][0] = d[n][1] = d[n][2] = d[n][3] = 0.0f;
}

// A block computes a tile of queries of one head of one row of the batch.
template <int HD>
static __global__ void __launch_bounds__(shape<HD>::THREADS, 3)
    grad_q_bf16(struct rlhf__attn_bwd_args b) {
    enum { TILE = shape<HD>::TILE, STEP = shape<HD>::STEP, THREADS = shape<HD>::THREADS };
    const struct rlhf__attn_args &a = b.a;
    DYN_SHARED(bytes);
    rlhf__bf16 *qs = (rlhf__bf16 *)bytes, *os = qs + room<HD>::OWN, *stage = os + room<HD>::OWN;
    const int head = (int)blockIdx.y, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int first = (a.tiles - 1 - (int)(blockIdx.x % (unsigned)a.tiles)) * TILE;
    struct rlhf__cuda_row row;
    if (!rlhf__cuda_row_check_training(a.rows, blockIdx.x / (unsigned)a.tiles, &row)) return;
    if (first >= row.nq) return; // skips the block's loads

    const int64_t col = (int64_t)head * a.head_dim, kv_col = (int64_t)(head / a.group) * a.head_dim;
    const rlhf__bf16 *k = (const rlhf__bf16 *)a.k + kv_col, *v = (const rlhf__bf16 *)a.v + kv_col;
    const struct rlhf__cuda_row queries = {0, 0, 0, 0, 0, 0, row.t0};
    rlhf__attn_load<HD, TILE, THREADS>(qs, (const rlhf__bf16 *)a.q + col, a.q_stride, queries,
                                       first, 0, row.nq, a.head_dim, a.wide);
    rlhf__attn_load<HD, TILE, THREADS>(os, (const rlhf__bf16 *)b.dout + col, a.out_stride, queries,
                                       first, 0, row.nq, a.head_dim, a.wide);
    const int begin = a.causal ? rlhf__attn_first(a, row.start + first + 1) : 0;
    const int step = begin / STEP * STEP; // the first key of the first step
    rlhf__attn_load<HD, STEP, THREADS>(stage, k, a.kv_stride, row, step, begin, row.nk, a.head_dim,
                                       a.wide);
    rlhf__attn_load<HD, STEP, THREADS>(stage + room<HD>::OTHER, v, a.kv_stride, row, step, begin,
                                       row.nk, a.head_dim, a.wide);
    rlhf__cp_async_commit();

    const int own = first + warp * 16; // the warp's first query
    const int keys = a.causal ? row.start + rlhf__attn_min(first + TILE, row.nq) : row.nk;
    const int warp_keys = own >= row.nq ? 0
                          : a.causal    ? row.start + rlhf__attn_min(own + 16, row.nq)
                                        : row.nk;
    const int warp_begin = a.causal ? rlhf__attn_first(a, row.start + own + 1) : 0;
    int from[2], seen[2];
    float lse[2], delta[2], dq[HD / 8][4];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int r = own + lane / 4 + 8 * h, there = r < row.nq;
        const int64_t at = (int64_t)(row.t0 + r) * a.heads + head;
        seen[h] = !there ? 0 : a.causal ? row.start + r + 1 : row.nk;
        from[h] = a.causal ? rlhf__attn_first(a, seen[h]) : 0;
        lse[h] = there ? in_log2(a.lse[at]) : 0.0f;
        delta[h] = there ? b.delta[at] : 0.0f;
    }
    clear<HD>(dq);
    for (int j0 = step; j0 < keys; j0 += STEP) {
        const int turn = (j0 - step) / STEP & 1;
        rlhf__bf16 *ks = stage + turn * 2 * room<HD>::OTHER, *vs = ks + room<HD>::OTHER;
        rlhf__cp_async_wait<0>();
        __syncthreads(); // the step has arrived, and the other stage is free
        if (j0 + STEP < keys) {
            rlhf__bf16 *next = stage + (turn ^ 1) * 2 * room<HD>::OTHER;
            rlhf__attn_load<HD, STEP, THREADS>(next, k, a.kv_stride, row, j0 + STEP, begin, row.nk,
                                               a.head_dim, a.wide);
            rlhf__attn_load<HD, STEP, THREADS>(next + room<HD>::OTHER, v, a.kv_stride, row,
                                               j0 + STEP, begin, row.nk, a.head_dim, a.wide);
            rlhf__cp_async_commit();
        }
        if (j0 >= warp_keys || j0 + STEP <= warp_begin)
            continue; // skips products of the warp that are 0
        float s[STEP / 8][4], dp[STEP / 8][4];
        rlhf__attn_rows_by_rows<HD, STEP>(s, qs + warp * 16 * room<HD>::PITCH, ks);
        rlhf__attn_rows_by_rows<HD, STEP>(dp, os + warp * 16 * room<HD>::PITCH, vs);
#pragma unroll
        for (int n = 0; n < STEP / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int j = j0 + n * 8 + 2 * (lane % 4) + (i & 1), h = i >> 1;
                const float p = probability(a, s[n][i], lse[h]);
                dp[n][i] = j >= from[h] && j < seen[h]
                               ? p * (dp[n][i] - delta[h]) * rlhf__attn_slope(a, s[n][i])
                               : 0.0f;
            }
        rlhf__attn_by_cols<HD, STEP>(dq, dp, ks);
    }
    rlhf__bf16 *mine = qs + warp * 16 * room<HD>::PITCH; // only this warp reads them
    __syncwarp(); // memory order: the last product has read it
    rlhf__attn_put<HD>(mine, dq, a.scale, a.scale);
    __syncwarp();
    rlhf__attn_store<HD>((rlhf__bf16 *)b.dq + row.t0 * a.q_stride + col, a.q_stride, mine, own,
                         row.nq, a.head_dim, a.wide);
}

// Copies a step's queries, their dout, lse and delta into one stage.
template <int HD>
static __device__ __forceinline__ void load_queries(rlhf__bf16 *qs, float *stats,
                                                    const struct rlhf__attn_bwd_args &b,
                                                    const struct rlhf__attn_walk &w) {
    enum { STEP = shape<HD>::STEP, THREADS = shape<HD>::THREADS };
    const struct rlhf__attn_args &a = b.a;
    const struct rlhf__cuda_row queries = {0, 0, 0, 0, 0, 0, w.row.t0};
    const int first = w.pos - w.row.start;
    const int64_t col = (int64_t)w.head * a.head_dim;
    rlhf__attn_load<HD, STEP, THREADS>(qs, (const rlhf__bf16 *)a.q + col, a.q_stride, queries,
                                       first, 0, w.row.nq, a.head_dim, a.wide);
    rlhf__attn_load<HD, STEP, THREADS>(qs + room<HD>::OTHER, (const rlhf__bf16 *)b.dout + col,
                                       a.out_stride, queries, first, 0, w.row.nq, a.head_dim,
                                       a.wide);
    const int t = first + (int)threadIdx.x % STEP;
    const int there = (unsigned)t < (unsigned)w.row.nq;
    const float *from = threadIdx.x < STEP ? a.lse : b.delta;
    if (threadIdx.x < 2 * STEP)
        rlhf__cp_async4(stats + threadIdx.x,
                        there ? from + (int64_t)(w.row.t0 + t) * a.heads + w.head : from,
                        there ? 4u : 0u);
    rlhf__cp_async_commit();
}

// A block computes a tile of keys of one key head of one row of the batch, and of these the columns
// from blockIdx.z * COLS onward. If a tile of queries is incomplete, the missing queries add 0,
// because their q, dout and delta are 0.
template <int HD>
static __global__ void __launch_bounds__(shape<HD>::THREADS, 2)
    grad_kv_bf16(struct rlhf__attn_bwd_args b) {
    enum { TILE = shape<HD>::TILE, STEP = shape<HD>::STEP, THREADS = shape<HD>::THREADS };
    enum { COLS = shape<HD>::COLS };
    const struct rlhf__attn_args &a = b.a;
    DYN_SHARED(bytes);
    SHARED(float[4 * STEP], stats);
    rlhf__bf16 *ks = (rlhf__bf16 *)bytes, *vs = ks + room<HD>::OWN, *stage = vs + room<HD>::OWN;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int first = (int)(blockIdx.x % (unsigned)a.tiles) * TILE;
    const uint32_t index = blockIdx.x / (unsigned)a.tiles;
    struct rlhf__cuda_row row;
    if (!rlhf__cuda_row_check_training(a.rows, index, &row)) return;
    if (first >= row.nq) return; // skips the block's loads

    const int64_t col = (int64_t)blockIdx.y * a.head_dim;
    const struct rlhf__cuda_row keys = {0, 0, 0, 0, 0, 0, row.t0};
    rlhf__attn_load<HD, TILE, THREADS>(ks, (const rlhf__bf16 *)a.k + col, a.kv_stride, keys, first,
                                       0, row.nq, a.head_dim, a.wide);
    rlhf__attn_load<HD, TILE, THREADS>(vs, (const rlhf__bf16 *)a.v + col, a.kv_stride, keys, first,
                                       0, row.nq, a.head_dim, a.wide);
    const int own = first + warp * 16, pos = row.start + (a.causal ? first : 0);
    const int end = ((int)blockIdx.y + 1) * a.group;
    const int limit = a.window ? row.start + first + TILE - 1 + a.window : INT32_MAX;
    struct rlhf__attn_walk w, next;
    w.head = (int)blockIdx.y * a.group;
    rlhf__attn_walk_row<STEP>(&w, row, index, pos);
    load_queries<HD>(stage, stats, b, w);
    const int part = (int)blockIdx.z * COLS; // the first column of dk and dv
    float dk[COLS / 8][4], dv[COLS / 8][4];
    clear<COLS>(dk);
    clear<COLS>(dv);
    for (int turn = 0, more = 1; more; turn ^= 1, w = next) {
        rlhf__bf16 *qs = stage + turn * 2 * room<HD>::OTHER, *os = qs + room<HD>::OTHER;
        const float *lse = stats + turn * 2 * STEP, *delta = lse + STEP;
        rlhf__cp_async_wait<0>();
        __syncthreads(); // the step has arrived, and the other stage is free
        next = w;
        more = rlhf__attn_walk_next<STEP>(&next, a.rows, row, index, pos, limit, end);
        if (more)
            load_queries<HD>(stage + (turn ^ 1) * 2 * room<HD>::OTHER,
                             stats + (turn ^ 1) * 2 * STEP, b, next);
        if (own >= row.nq || (a.causal && w.pos + STEP <= row.start + own) ||
            rlhf__attn_first(a, w.pos + 1) >= row.start + own + 16)
            continue; // skips products of the warp that are 0
        float s[STEP / 8][4], dp[STEP / 8][4];
        rlhf__attn_rows_by_rows<HD, STEP>(s, ks + warp * 16 * room<HD>::PITCH, qs);
        rlhf__attn_rows_by_rows<HD, STEP>(dp, vs + warp * 16 * room<HD>::PITCH, os);
#pragma unroll
        for (int n = 0; n < STEP / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int o = n * 8 + 2 * (lane % 4) + (i & 1);
                const int key = row.start + own + lane / 4 + 8 * (i >> 1);
                const float p = probability(a, s[n][i], in_log2(lse[o]));
                const float slope = rlhf__attn_slope(a, s[n][i]);
                const int sees =
                    !a.causal || (key <= w.pos + o && key >= rlhf__attn_first(a, w.pos + o + 1));
                s[n][i] = sees ? p : 0.0f;
                dp[n][i] = s[n][i] * (dp[n][i] - delta[o]) * slope;
            }
        rlhf__attn_by_cols<HD, STEP, 2, COLS>(dv, s, os + part);
        rlhf__attn_by_cols<HD, STEP, 1, COLS>(dk, dp, qs + part);
    }
    rlhf__bf16 *mine = ks + warp * 16 * room<HD>::PITCH; // only this warp reads these two
    rlhf__bf16 *other = vs + warp * 16 * room<HD>::PITCH;
    __syncwarp(); // memory order: the last product has read them
    rlhf__attn_put<HD, COLS>(mine, dk, a.scale, a.scale);
    rlhf__attn_put<HD, COLS>(other, dv, 1.0f, 1.0f);
    __syncwarp();
    const int64_t at = row.t0 * a.kv_stride + col + part;
    rlhf__attn_store<HD, COLS>((rlhf__bf16 *)b.dk + at, a.kv_stride, mine, own, row.nq,
                               a.head_dim - part, a.wide);
    rlhf__attn_store<HD, COLS>((rlhf__bf16 *)b.dv + at, a.kv_stride, other, own, row.nq,
                               a.head_dim - part, a.wide);
}

template <int HD> static rlhf_status run(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b) {
    enum { TILE = shape<HD>::TILE, THREADS = shape<HD>::THREADS, PARTS = HD / shape<HD>::COLS };
    const size_t bytes = room<HD>::ALL * sizeof(rlhf__bf16);
    const unsigned tiles = (b->a.rows.max_q + TILE - 1) / TILE;
    b->a.tiles = tiles ? (int32_t)tiles : 1;
    const unsigned x = (unsigned)b->a.tiles * b->a.rows.n;
    RLHF_TRY(rlhf__cuda_check(cu, "grad_q_bf16", ALLOW_SHARED(grad_q_bf16<HD>, bytes)));
    RLHF_TRY(rlhf__cuda_check(cu, "grad_kv_bf16", ALLOW_SHARED(grad_kv_bf16<HD>, bytes)));
    RUN(cu, grad_q_bf16<HD>, dim3(x, (unsigned)b->a.heads), dim3(THREADS), bytes, *b);
    RUN(cu, grad_kv_bf16<HD>, dim3(x, (unsigned)(b->a.heads / b->a.group), PARTS), dim3(THREADS),
        bytes, *b);
    return RLHF_OK;
}

rlhf_status rlhf__cuda_attention_bwd_bf16(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b) {
    const int32_t d = b->a.head_dim;
    return d <= 16    ? run<16>(cu, b)
           : d <= 32  ? run<32>(cu, b)
           : d <= 64  ? run<64>(cu, b)
           : d <= 80  ? run<80>(cu, b)
           : d <= 96  ? run<96>(cu, b)
           : d <= 128 ? run<128>(cu, b)
                      : run<256>(cu, b);
}
