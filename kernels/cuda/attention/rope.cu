// rope.cu: rotary positions (Su et al. 2021) on queries and keys, optionally after an RMS norm of
// each head, or of all queries and all keys of a row: y_c = n_c cos - n_{c+h} sin, y_{c+h} =
// n_{c+h} cos + n_c sin, and y_c = n_c for the elements of a head that are not rotated.
#include "attention/rope.h"
#include "machine/table.h"

enum { N = 4, THREADS = 256, WARPS = 4, PAIRS = 32 * N };

rlhf_status rlhf__rope_read(struct rlhf__cuda *cu, const char *op, struct rlhf__rope_args *a,
                            const rlhf_rope *from, uint32_t rows, int32_t *dtype) {
    rlhf_rope g;
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, &g, sizeof g, from, RLHF_SIZE_TO(rlhf_rope, stats)));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, g.dtype));
    const int32_t keys = g.kv_heads ? g.kv_heads : g.heads;
    if (g.heads < 1 || keys < 1 || g.head_dim < 2 || g.head_dim % 2 || g.n_pos < 1)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: %d heads, %d of keys, head_dim %d (which must be even), n_pos "
                               "%d",
                               op, g.heads, keys, g.head_dim, g.n_pos);
    if (g.rotary_dim < 0 || g.rotary_dim > g.head_dim || g.rotary_dim % 2)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: rotary_dim %d must be even and at most head_dim %d", op,
                               g.rotary_dim, g.head_dim);
    const int64_t width = ((int64_t)g.heads + keys) * g.head_dim;
    if (g.stride < width)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: stride is %lld, queries and keys have %lld",
                               op, (long long)g.stride, (long long)width);
    if (!g.gamma_q != !g.gamma_k || !g.raw != !g.stats)
        return rlhf__cuda_fail(
            cu, RLHF_E_INVALID,
            "%s: gamma_q and gamma_k, and raw and stats, must both be NULL or none", op);
    if (g.raw && !g.gamma_q)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: raw and stats are there without gamma", op);
    *a = {};
    a->pos = rlhf__cuda_i32(g.pos);
    a->turn = rlhf__cuda_f32(g.turn);
    a->gamma_q = rlhf__cuda_f32(g.gamma_q);
    a->gamma_k = rlhf__cuda_f32(g.gamma_k);
    a->raw = rlhf__cuda_mem(g.raw);
    a->stats = rlhf__cuda_f32(g.stats);
    a->stride = g.stride;
    a->rows = rows;
    a->queries = (uint32_t)g.heads;
    a->heads = (uint32_t)g.heads + (uint32_t)keys;
    a->whole = g.whole != 0;
    a->norms = a->whole ? 2 : a->heads;
    a->dim = (uint32_t)g.head_dim;
    a->half = (uint32_t)(g.rotary_dim ? g.rotary_dim : g.head_dim) / 2;
    a->rest = a->dim / 2 - a->half;
    a->n_pos = g.n_pos;
    a->eps = (float)g.eps;
    a->offset = (float)g.gamma_offset;
    a->fault = cu->fault;
    *dtype = g.dtype;
    return RLHF_OK;
}

// ---- without norms: a thread rotates N pairs of a head ----

template <class T, bool WIDE>
static __global__ void __launch_bounds__(THREADS)
    rope_turn(rlhf__rope_args a, T *x, uint32_t groups, int back) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    const uint64_t head = i / groups, t = head / a.heads, c = i % groups * N;
    if (t >= a.rows) return;
    const float *const turn = rlhf__rope_at(a, t, head % a.heads == 0 && c == 0);
    if (!turn) return;
    T *const line = x + t * (uint64_t)a.stride + head % a.heads * a.dim;
    float u[N], v[N], cosine[N], sine[N];
    rlhf__load<WIDE>(u, line, c, a.half);
    rlhf__load<WIDE>(v, line + a.half, c, a.half);
    rlhf__load<WIDE>(cosine, turn, c, a.half);
    rlhf__load<WIDE>(sine, turn + a.half, c, a.half);
    for (int j = 0; j < N; j++)
        rlhf__rope_pair(&u[j], &v[j], cosine[j], back ? -sine[j] : sine[j]);
    rlhf__store<WIDE>(line, u, c, a.half);
    rlhf__store<WIDE>(line + a.half, v, c, a.half);
}

template <class T>
static rlhf_status turn_as(struct rlhf__cuda *cu, const struct rlhf__rope_args *a, T *x, int back) {
    const uint32_t groups = (a->half + N - 1) / N;
    const uint64_t n = (uint64_t)a->rows * a->heads * groups;
    const bool wide = rlhf__rope_aligned<N>(*a, x);
    RUN(cu, (wide ? rope_turn<T, true> : rope_turn<T, false>),
        dim3((unsigned)((n + THREADS - 1) / THREADS)), dim3(THREADS), 0, *a, x, groups, back);
    return RLHF_OK;
}

rlhf_status rlhf__rope_turn(struct rlhf__cuda *cu, const struct rlhf__rope_args *a, rlhf_dev x,
                            int32_t dtype, int back) {
    if (dtype == RLHF_BF16) return turn_as(cu, a, rlhf__cuda_mem<rlhf__bf16>(x), back);
    return turn_as(cu, a, rlhf__cuda_f32(x), back);
}

// ---- with norms: a warp per norm; of each part of a head, lane l has pairs 128 g + 4 l .. + 3, g
// = 0, 1,
// ...

// Adds the squares of a head's elements of this lane. Unless raw is NULL, also saves the head
// there.
template <class T, bool WIDE>
static __device__ __forceinline__ float add_squares(const rlhf__rope_args &a, float square,
                                                    const T *line, T *raw) {
    float u[N], v[N];
    for (int rest = 0; rest < 2; rest++) {
        const rlhf__rope_part p = rlhf__rope_part_of(a, rest);
        for (uint32_t c = threadIdx.x % 32 * N; c < p.half; c += PAIRS) {
            rlhf__load<WIDE>(u, line + p.at, c, p.half);
            rlhf__load<WIDE>(v, line + p.at + p.half, c, p.half);
            for (int j = 0; j < N; j++)
                square = fmaf(v[j], v[j], fmaf(u[j], u[j], square));
            if (!raw) continue;
            rlhf__store<WIDE>(raw + p.at, u, c, p.half);
            rlhf__store<WIDE>(raw + p.at + p.half, v, c, p.half);
        }
    }
    return square;
}

// Normalizes and rotates a part of a head.
template <class T, bool WIDE>
static __device__ __forceinline__ void norm_part(const rlhf__rope_args &a, rlhf__rope_part p,
                                                 T *line, const float *gamma, const float *turn,
                                                 float rinv) {
    line += p.at;
    gamma += p.at;
    for (uint32_t c = threadIdx.x % 32 * N; c < p.half; c += PAIRS) {
        float u[N], v[N], cosine[N], sine[N], low[N], high[N];
        rlhf__load<WIDE>(u, line, c, p.half);
        rlhf__load<WIDE>(v, line + p.half, c, p.half);
        rlhf__load<WIDE>(low, gamma, c, p.half);
        rlhf__load<WIDE>(high, gamma + p.half, c, p.half);
        if (p.turns) rlhf__load<WIDE>(cosine, turn, c, p.half);
        if (p.turns) rlhf__load<WIDE>(sine, turn + p.half, c, p.half);
        for (int j = 0; j < N; j++) {
            u[j] = (a.offset + low[j]) * (u[j] * rinv);
            v[j] = (a.offset + high[j]) * (v[j] * rinv);
            if (p.turns) rlhf__rope_pair(&u[j], &v[j], cosine[j], sine[j]);
        }
        rlhf__store<WIDE>(line, u, c, p.half);
        rlhf__store<WIDE>(line + p.half, v, c, p.half);
    }
}

template <class T, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS) rope_norm(rlhf__rope_args a, T *x) {
    const uint64_t i = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const uint64_t t = i / a.norms;
    if (t >= a.rows) return; // the whole warp returns
    const rlhf__rope_heads hs = rlhf__rope_heads_of(a, (uint32_t)(i % a.norms));
    const uint32_t lane = threadIdx.x % 32;
    const float *const turn = rlhf__rope_at(a, t, hs.first == 0 && lane == 0);
    if (!turn) return; // the whole warp returns
    const float *const gamma = hs.first < a.queries ? a.gamma_q : a.gamma_k;
    T *const lines = x + t * (uint64_t)a.stride + hs.first * a.dim;
    T *const raws = a.raw ? (T *)a.raw + (t * a.heads + hs.first) * a.dim : NULL;
    const uint32_t width = hs.count * a.dim;
    float square = 0.0f;
    for (uint32_t at = 0; at < width; at += a.dim)
        square = add_squares<T, WIDE>(a, square, lines + at, raws ? raws + at : NULL);
    const float rinv = 1.0f / sqrtf(rlhf__warp_sum(square) / (float)width + a.eps);
    if (a.stats && lane == 0) a.stats[i] = rinv;
    for (uint32_t at = 0; at < width; at += a.dim) {
        norm_part<T, WIDE>(a, rlhf__rope_part_of(a, false), lines + at, gamma + at, turn, rinv);
        norm_part<T, WIDE>(a, rlhf__rope_part_of(a, true), lines + at, gamma + at, turn, rinv);
    }
}

template <class T>
static rlhf_status norm_as(struct rlhf__cuda *cu, const struct rlhf__rope_args *a, T *x) {
    const uint64_t n = (uint64_t)a->rows * a->norms;
    const bool wide = rlhf__rope_aligned<N>(*a, x);
    if (a->raw) {
        rlhf__cuda_wrote(cu, a->raw, (uint64_t)a->rows * a->heads * a->dim * sizeof *x);
        rlhf__cuda_wrote(cu, a->stats, n * sizeof *a->stats);
    }
    RUN(cu, (wide ? rope_norm<T, true> : rope_norm<T, false>),
        dim3((unsigned)((n + WARPS - 1) / WARPS)), dim3(32 * WARPS), 0, *a, x);
    return RLHF_OK;
}

static rlhf_status rope(void *ctx, const rlhf_rope *from, rlhf_dev x, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__rope_args a;
    int32_t dtype;
    RLHF_TRY(rlhf__rope_read(cu, "rope", &a, from, rows, &dtype));
    if (!rows) return RLHF_OK;
    a.code = RLHF__FAULT_ROPE_POS;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(x), rows * (uint64_t)a.stride * rlhf_dtype_size(dtype));
    if (!a.gamma_q)
        RLHF_TRY(rlhf__rope_turn(cu, &a, x, dtype, 0));
    else if (dtype == RLHF_BF16)
        RLHF_TRY(norm_as(cu, &a, rlhf__cuda_mem<rlhf__bf16>(x)));
    else
        RLHF_TRY(norm_as(cu, &a, rlhf__cuda_f32(x)));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_rope(rlhf_compute *t) { t->rope = rope; }
