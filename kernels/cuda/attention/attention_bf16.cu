// attention_bf16.cu: attention forward in bf16. A warp owns 16 queries; keys come in tiles of 64
// or, for heads wider than 128, of 32.
#include "attention/attention_bf16.h"

// PARTS_BELOW: with fewer blocks than this, a large card is not full, so long rows are divided.
enum { PARTS_BELOW = 1024 };

namespace {
// The tiles of keys. For wide heads, a warp does not keep its queries in registers: they stay in
// QUERIES rows of shared memory per warp.
template <int HD> struct shape {
    enum { WIDE = HD > 128, KEYS = WIDE ? 32 : 64, TILE = KEYS * (HD + 8) };
    enum { QUERIES = WIDE ? 16 : 0 };
};

// The state of a thread for two of the warp's 16 queries, rows g and g + 8 with g = lane / 4: the
// largest score in units of log2, the sum of exponentials, and the thread's part of the output.
// During a segment, the sum has only the thread's own columns. At the end of the segment, it
// becomes the sum of all columns.
template <int HD> struct state { float m[2], l[2], o[HD / 8][4]; };
} // namespace

template <int HD> static __device__ __forceinline__ void clear(struct state<HD> &x) {
#pragma unroll
    for (int h = 0; h < 2; h++)
        x.m[h] = -INFINITY, x.l[h] = 0.0f;
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
        x.o[n][0] = x.o[n][1] = x.o[n][2] = x.o[n][3] = 0.0f;
}

// Turn the unscaled scores of a tile of keys, which starts at j0, into probabilities. Query h sees
// keys from[h] .. seen[h] - 1. The maximum is taken before scaling, so that scaling costs only an
// FMA. This is right only for a positive scale. With a negative scale, the sign of all scores is
// flipped first. A scale of 0 is replaced with the smallest positive number, which also prevents
// NaN. With a softcap, the scores are bent first, and the scale is that of their cap.
template <int HD>
static __device__ __forceinline__ void softmax(struct state<HD> &x, float (*s)[4], int j0,
                                               const int from[2], const int seen[2],
                                               const struct rlhf__attn_args &a) {
    enum { KEYS = shape<HD>::KEYS };
    const int t = (int)threadIdx.x % 4;
    const float scale = a.cap_log2 == 0.0f ? a.scale_log2 : a.cap_log2;
    if (a.cap_log2 != 0.0f)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[n][i] = rlhf__tanhf(s[n][i] * a.bend);
    const float size = fmaxf(fabsf(scale), 0x1p-126f);
    if (scale < 0.0f)
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[n][i] = -s[n][i];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float raw = -INFINITY;
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; i++) {
                const int j = j0 + n * 8 + 2 * t + (i & 1);
                s[n][i] = j >= from[h] && j < seen[h] ? s[n][i] : -INFINITY;
                raw = fmaxf(raw, s[n][i]);
            }
        const float top = fmaxf(x.m[h], rlhf__attn_quad_max(raw) * size);
        const float base = top == -INFINITY ? 0.0f : top, fade = rlhf__ex2(x.m[h] - base);
        x.m[h] = top;
        x.l[h] *= fade;
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; i++)
                x.l[h] += s[n][i] = rlhf__ex2(fmaf(s[n][i], size, -base));
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
            x.o[n][2 * h] *= fade, x.o[n][2 * h + 1] *= fade;
    }
}

// Merges the state x of the current segment with the merged state of all earlier segments, which is
// in shared memory. Called at the end of every segment except the first that the warp sees.
template <int HD, int THREADS>
static __device__ __forceinline__ void merge(struct state<HD> &x, const float *kept) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float m = kept[h * THREADS], top = fmaxf(m, x.m[h]);
        const float was = rlhf__ex2(m - top), now = rlhf__ex2(x.m[h] - top);
        x.m[h] = top;
        x.l[h] = fmaf(x.l[h], now, kept[(2 + h) * THREADS] * was);
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
#pragma unroll
            for (int i = 2 * h; i < 2 * h + 2; i++)
                x.o[n][i] = fmaf(x.o[n][i], now, kept[(4 + n * 4 + i) * THREADS] * was);
    }
}
template <int HD, int THREADS>
static __device__ __forceinline__ void keep(float *kept, const struct state<HD> &x) {
#pragma unroll
    for (int h = 0; h < 2; h++)
        kept[h * THREADS] = x.m[h], kept[(2 + h) * THREADS] = x.l[h];
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            kept[(4 + n * 4 + i) * THREADS] = x.o[n][i];
}

// The address of the results of segment s for one query and head. The results are the maximum
// score, the sum, and the output (a.head_dim columns).
static __device__ __forceinline__ float *part_of(const struct rlhf__attn_args &a, int64_t token,
                                                 int head, int s) {
    return a.parts + ((token * a.heads + head) * a.segments + s) * (2 + a.head_dim);
}
template <int HD>
static __device__ __forceinline__ void leave(const struct rlhf__attn_args &a,
                                             const struct state<HD> &x,
                                             const struct rlhf__cuda_row &row, int own, int rows) {
    const int lane = (int)threadIdx.x % 32, t = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int r = own + lane / 4 + 8 * h;
        if (r >= rows) continue;
        float *part = part_of(a, row.t0 + r / a.group, (int)blockIdx.y * a.group + r % a.group,
                              (int)blockIdx.z);
        if (t == 0) part[0] = x.m[h], part[1] = x.l[h];
#pragma unroll
        for (int n = 0; n < HD / 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (n * 8 + 2 * t + i < a.head_dim) part[2 + n * 8 + 2 * t + i] = x.o[n][2 * h + i];
    }
}

// A block computes WARPS * 16 queries of one key head of one row of the batch. The block's query r
// is query head r % group at token r / group, so that the heads of a group read their keys only
// once. Shared memory has two stages of a tile of keys and their values, and then the queries of
// wide heads. If there are several segments, the saved state of each thread follows. With PART, the
// block computes only segment blockIdx.z and stores its state in a.parts.
template <int HD, int WARPS, bool PART>
static __global__ void __launch_bounds__(WARPS * 32) attend_bf16(struct rlhf__attn_args a) {
    enum { THREADS = WARPS * 32, WIDE = shape<HD>::WIDE, KEYS = shape<HD>::KEYS };
    enum { TILE = shape<HD>::TILE, QUERIES = WARPS * shape<HD>::QUERIES * (HD + 8) };
    DYN_SHARED(bytes);
    rlhf__bf16 *stage = (rlhf__bf16 *)bytes, *qs = stage + (WIDE ? 4 : 2) * TILE;
    float *kept = (float *)(bytes + (4 * TILE + QUERIES) * sizeof(rlhf__bf16)) + threadIdx.x;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int first = (a.tiles - 1 - (int)(blockIdx.x % (unsigned)a.tiles)) * WARPS * 16;
    struct rlhf__cuda_row row;
    if (!rlhf__cuda_row_check(a.rows, blockIdx.x / (unsigned)a.tiles, &row)) return; // all threads
    const int rows = row.nq * a.group;
    if (first >= rows) return; // skips the block's loads
    const int block_last = rlhf__attn_min(first + WARPS * 16, rows) - 1;
    int keys = a.causal ? row.start + block_last / a.group + 1 : row.nk; // keys that the block sees
    const int begin = a.causal ? rlhf__attn_first(a, row.start + first / a.group + 1) : 0;
    int tile = begin / KEYS * KEYS; // the first key of the block's first tile
    if (PART) {
        const int segment = (int)blockIdx.z * RLHF__ATTN_SEGMENT;
        if (segment >= keys || segment + RLHF__ATTN_SEGMENT <= begin) return;
        keys = rlhf__attn_min(keys, segment + RLHF__ATTN_SEGMENT);
        if (tile < segment) tile = segment;
    }

    const int64_t kv_col = (int64_t)blockIdx.y * a.head_dim, col = kv_col * a.group;
    const rlhf__bf16 *k = (const rlhf__bf16 *)a.k + kv_col, *v = (const rlhf__bf16 *)a.v + kv_col;
    const struct rlhf__cuda_row queries = {0, 0, 0, 0, 0, 0, row.t0};
    rlhf__attn_load<HD, WARPS * 16, THREADS>(qs, (const rlhf__bf16 *)a.q + col, a.q_stride, queries,
                                             first, 0, rows, a.head_dim, a.wide, a.group);
    rlhf__cp_async_commit();
    rlhf__attn_load<HD, KEYS, THREADS>(stage, k, a.kv_stride, row, tile, begin, row.nk, a.head_dim,
                                       a.wide);
    rlhf__attn_load<HD, KEYS, THREADS>(stage + TILE, v, a.kv_stride, row, tile, begin, row.nk,
                                       a.head_dim, a.wide);
    rlhf__cp_async_commit();
    rlhf__cp_async_wait<1>();
    __syncthreads();
    qs += warp * 16 * (HD + 8); // of the warp
    unsigned qf[WIDE ? 1 : HD / 16][4];
    if constexpr (!WIDE) rlhf__attn_left<HD>(qf, qs);

    const int own = first + warp * 16, last = rlhf__attn_min(own + 16, rows) - 1; // of the warp
    const int warp_keys = own >= rows ? 0 : a.causal ? row.start + last / a.group + 1 : row.nk;
    const int warp_begin = a.causal ? rlhf__attn_first(a, row.start + own / a.group + 1) : 0;
    int from[2], seen[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int r = own + lane / 4 + 8 * h;
        seen[h] = r >= rows ? 0 : a.causal ? row.start + r / a.group + 1 : row.nk;
        from[h] = a.causal ? rlhf__attn_first(a, seen[h]) : 0;
    }
    struct state<HD> x;
    clear(x);
    for (int j0 = tile; j0 < keys; j0 += KEYS) {
        const int turn = (j0 - tile) / KEYS & 1;
        rlhf__bf16 *ks = stage + turn * 2 * TILE, *vs = ks + TILE;
        rlhf__cp_async_wait<0>();
        __syncthreads(); // the tile has arrived, and the other stage is free
        if (j0 + KEYS < keys) {
            rlhf__bf16 *next = stage + (turn ^ 1) * 2 * TILE;
            rlhf__attn_load<HD, KEYS, THREADS>(next, k, a.kv_stride, row, j0 + KEYS, begin, row.nk,
                                               a.head_dim, a.wide);
            rlhf__attn_load<HD, KEYS, THREADS>(next + TILE, v, a.kv_stride, row, j0 + KEYS, begin,
                                               row.nk, a.head_dim, a.wide);
            rlhf__cp_async_commit();
        }
        if (j0 >= warp_keys || j0 + KEYS <= warp_begin) continue; // the whole warp continues
        float s[KEYS / 8][4];
        if constexpr (WIDE)
            rlhf__attn_rows_by_rows<HD, KEYS>(s, qs, ks);
        else
            rlhf__attn_by_rows<HD, KEYS>(s, qf, ks);
        softmax(x, s, j0, from, seen, a);
        rlhf__attn_by_cols<HD, KEYS>(x.o, s, vs);
        const int end = j0 + KEYS, done = end >= warp_keys;
        if (!done && end % RLHF__ATTN_SEGMENT) continue;
        x.l[0] = rlhf__attn_quad_sum(x.l[0]);
        x.l[1] = rlhf__attn_quad_sum(x.l[1]);
        if (PART) continue; // only one segment is computed, so nothing is merged
        if (j0 / RLHF__ATTN_SEGMENT > warp_begin / RLHF__ATTN_SEGMENT) merge<HD, THREADS>(x, kept);
        if (done) continue;
        keep<HD, THREADS>(kept, x);
        clear(x);
    }
    if (PART) {
        leave(a, x, row, own, rows);
        return;
    }
    __syncthreads(); // all stages are free: the output goes through them
    rlhf__bf16 *mine = stage + warp * 16 * (HD + 8);
    rlhf__attn_put<HD>(mine, x.o, 1.0f / x.l[0], 1.0f / x.l[1]);
    __syncwarp();
    rlhf__attn_store<HD>((rlhf__bf16 *)a.out + row.t0 * a.out_stride + col, a.out_stride, mine, own,
                         rows, a.head_dim, a.wide, a.group);
    if (!a.lse || lane % 4) return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int r = own + lane / 4 + 8 * h;
        if (r < rows)
            a.lse[(int64_t)(row.t0 + r / a.group) * a.heads + (int)blockIdx.y * a.group +
                  r % a.group] = fmaf(x.m[h], 0.693147181f, rlhf__logf(x.l[h]));
    }
}

// A warp computes one query and head. Different blocks have computed the results of the segments.
// The warp merges these results in order, with the same arithmetic as merge().
template <int HD>
static __global__ void __launch_bounds__(128) attend_parts(struct rlhf__attn_args a) {
    const int lane = (int)threadIdx.x % 32, items = (int)(a.rows.max_q * (unsigned)a.heads);
    const int item = (int)blockIdx.y * 4 + (int)threadIdx.x / 32; // index in the ragged row
    const int query = item / a.heads, head = item % a.heads;
    struct rlhf__cuda_row row;
    if (item >= items || !rlhf__cuda_row_check(a.rows, blockIdx.x, &row) || query >= row.nq) return;
    const int seen = a.causal ? row.start + query + 1 : row.nk;
    const int first = a.causal ? rlhf__attn_first(a, seen) / RLHF__ATTN_SEGMENT : 0; // segment
    const float *part = part_of(a, row.t0 + query, head, first);
    float m = part[0], l = part[1], o[(HD + 31) / 32];
#pragma unroll
    for (int i = 0; i < (HD + 31) / 32; i++)
        o[i] = lane + 32 * i < a.head_dim ? part[2 + lane + 32 * i] : 0.0f; // skips a read
    for (int s = first + 1; s * RLHF__ATTN_SEGMENT < seen; s++) {
        part += 2 + a.head_dim;
        const float top = fmaxf(m, part[0]);
        const float was = rlhf__ex2(m - top), now = rlhf__ex2(part[0] - top);
        m = top;
        l = fmaf(part[1], now, l * was);
#pragma unroll
        for (int i = 0; i < (HD + 31) / 32; i++)
            if (lane + 32 * i < a.head_dim) o[i] = fmaf(part[2 + lane + 32 * i], now, o[i] * was);
    }
    const float inv = 1.0f / l;
    rlhf__bf16 *out =
        (rlhf__bf16 *)a.out + (row.t0 + query) * a.out_stride + (int64_t)head * a.head_dim;
#pragma unroll
    for (int i = 0; i < (HD + 31) / 32; i++)
        if (lane + 32 * i < a.head_dim) out[lane + 32 * i] = rlhf__to_bf16(fmaf(o[i], inv, 0.0f));
    if (a.lse && lane == 0)
        a.lse[(int64_t)(row.t0 + query) * a.heads + head] = fmaf(m, 0.693147181f, rlhf__logf(l));
}

static int32_t segments_of(const struct rlhf__attn_args *a) {
    return (int32_t)((a->rows.max_k + RLHF__ATTN_SEGMENT - 1) / RLHF__ATTN_SEGMENT);
}

// True if different blocks compute the segments of a row.
static bool in_parts(const struct rlhf__attn_args *a) {
    const uint64_t rows = (uint64_t)a->rows.max_q * (uint64_t)a->group;
    const uint64_t blocks = (uint64_t)a->rows.n * (uint64_t)(a->heads / a->group);
    return rows <= 16 && a->rows.max_k > RLHF__ATTN_SEGMENT && blocks < PARTS_BELOW;
}

static uint64_t parts_bytes(const struct rlhf__attn_args *a) {
    return (uint64_t)a->rows.total * (uint64_t)a->heads * (uint64_t)segments_of(a) *
           (uint64_t)(2 + a->head_dim) * sizeof(float);
}

uint64_t rlhf__cuda_attention_bf16_bytes(const struct rlhf__attn_args *a) {
    return in_parts(a) ? parts_bytes(a) : 0;
}

// The number of bytes of shared memory for the tiles of attend_bf16 and the queries of wide heads.
template <int HD, int WARPS> static size_t tiles_bytes() {
    return (4 * shape<HD>::TILE + WARPS * shape<HD>::QUERIES * (HD + 8)) * sizeof(rlhf__bf16);
}

// For few rows with many keys: one block for each segment. The bits are the same as with one block.
template <int HD>
static rlhf_status launch_parts(struct rlhf__cuda *cu, struct rlhf__attn_args *a) {
    const size_t bytes = tiles_bytes<HD, 1>();
    const unsigned n = a->rows.n, groups = (unsigned)(a->heads / a->group);
    void *p;
    a->segments = segments_of(a);
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_ATTN, parts_bytes(a), &p));
    a->parts = (float *)p;
    a->tiles = 1;
    RLHF_TRY(rlhf__cuda_check(cu, "attend_bf16", ALLOW_SHARED((attend_bf16<HD, 1, true>), bytes)));
    RUN(cu, (attend_bf16<HD, 1, true>), dim3(n, groups, (unsigned)a->segments), dim3(32), bytes,
        *a);
    RUN(cu, attend_parts<HD>, dim3(n, (a->rows.max_q * (unsigned)a->heads + 3) / 4), dim3(128), 0,
        *a);
    return RLHF_OK;
}

// The number of bytes of shared memory that attend_bf16<HD, WARPS, false> needs.
template <int HD, int WARPS> static size_t room(const struct rlhf__attn_args *a) {
    const size_t kept = WARPS * 32 * (4 + HD / 2) * sizeof(float);
    return tiles_bytes<HD, WARPS>() + (a->rows.max_k > RLHF__ATTN_SEGMENT ? kept : 0);
}

template <int HD, int WARPS>
static rlhf_status launch(struct rlhf__cuda *cu, struct rlhf__attn_args *a) {
    const unsigned rows = a->rows.max_q * (unsigned)a->group;
    const unsigned n = (rows + WARPS * 16 - 1) / (WARPS * 16);
    const size_t bytes = room<HD, WARPS>(a);
    RLHF_TRY(
        rlhf__cuda_check(cu, "attend_bf16", ALLOW_SHARED((attend_bf16<HD, WARPS, false>), bytes)));
    a->tiles = n ? (int32_t)n : 1;
    RUN(cu, (attend_bf16<HD, WARPS, false>),
        dim3((unsigned)a->tiles * a->rows.n, (unsigned)(a->heads / a->group)), dim3(WARPS * 32),
        bytes, *a);
    return RLHF_OK;
}

// A block has four warps, if there is room for them. With heads of 128 and long rows, two fit in
// 99 KiB. With heads of 256, four fit in 99 KiB for short rows; for long rows four fit in 227 KiB,
// two in 163 KiB and one in 99 KiB. Warps of a block have only the keys in common, so the number of
// warps does not change the bits.
template <int HD> static rlhf_status run(struct rlhf__cuda *cu, struct rlhf__attn_args *a) {
    const uint64_t rows = (uint64_t)a->rows.max_q * (uint64_t)a->group;
    const size_t most = (size_t)cu->shared_most;
    if (rows <= 16) return in_parts(a) ? launch_parts<HD>(cu, a) : launch<HD, 1>(cu, a);
    if (room<HD, 4>(a) <= most) return launch<HD, 4>(cu, a);
    return room<HD, 2>(a) <= most ? launch<HD, 2>(cu, a) : launch<HD, 1>(cu, a);
}

rlhf_status rlhf__cuda_attention_bf16(struct rlhf__cuda *cu, struct rlhf__attn_args *a) {
    const int32_t d = a->head_dim;
    return d <= 16    ? run<16>(cu, a)
           : d <= 32  ? run<32>(cu, a)
           : d <= 64  ? run<64>(cu, a)
           : d <= 80  ? run<80>(cu, a)
           : d <= 96  ? run<96>(cu, a)
           : d <= 128 ? run<128>(cu, a)
                      : run<256>(cu, a);
}
