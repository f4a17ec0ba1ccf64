// rope_bwd.cu: the derivative of rope.cu. With gamma standing for offset + gamma and n = gamma
// xhat, xhat = x r:
//   dn_c = dy_c cos + dy_{c+h} sin, dn_{c+h} = dy_{c+h} cos - dy_c sin;
//   dn_c = dy_c for the elements of a head that are not rotated;
//   dgamma += dn xhat, dx = (gamma dn - xhat mean(gamma dn xhat)) r.
#include "attention/rope.h"
#include "machine/table.h"
#include "row/parts.h"

enum { N = 4, WARPS = 8, PAIRS = 32 * N, CHUNK = 16, KINDS = 2 };

// Backward of N pairs of part s of a head. Returns dn in u and v, and xhat in p and q.
template <class T, bool WIDE>
static __device__ __forceinline__ void
pairs_back(const rlhf__rope_part &s, const T *line, const T *raw, const float *turn, float rinv,
           uint32_t c, float (&u)[N], float (&v)[N], float (&p)[N], float (&q)[N]) {
    float cosine[N], sine[N];
    rlhf__load<WIDE>(u, line + s.at, c, s.half);
    rlhf__load<WIDE>(v, line + s.at + s.half, c, s.half);
    rlhf__load<WIDE>(p, raw + s.at, c, s.half);
    rlhf__load<WIDE>(q, raw + s.at + s.half, c, s.half);
    if (s.turns) rlhf__load<WIDE>(cosine, turn, c, s.half);
    if (s.turns) rlhf__load<WIDE>(sine, turn + s.half, c, s.half);
    for (int j = 0; j < N; j++) {
        if (s.turns) rlhf__rope_pair(&u[j], &v[j], cosine[j], -sine[j]);
        p[j] *= rinv;
        q[j] *= rinv;
    }
}

// ---- dx: a warp per norm; of each part of a head, lane l has pairs 128 g + 4 l .. + 3, g = 0, 1,
// ... ----

// Calls body(s, c, at) for the pairs of this lane in the heads of a norm: pairs c .. c + N - 1 of
// part s of the head that begins at element `at`.
template <class F>
static __device__ __forceinline__ void each_pairs(const rlhf__rope_args &a, uint32_t width,
                                                  F body) {
    for (uint32_t at = 0; at < width; at += a.dim)
        for (int rest = 0; rest < 2; rest++) {
            const rlhf__rope_part s = rlhf__rope_part_of(a, rest);
            for (uint32_t c = threadIdx.x % 32 * N; c < s.half; c += PAIRS)
                body(s, c, at);
        }
}

template <class T, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS) rope_bwd_dx(rlhf__rope_args a, T *dx) {
    const uint64_t i = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const uint64_t t = i / a.norms;
    if (t >= a.rows) return; // the whole warp returns
    const rlhf__rope_heads hs = rlhf__rope_heads_of(a, (uint32_t)(i % a.norms));
    const float *const turn = rlhf__rope_at(a, t, hs.first == 0 && threadIdx.x % 32 == 0);
    if (!turn) return; // the whole warp returns
    const float *const gamma = hs.first < a.queries ? a.gamma_q : a.gamma_k;
    T *const line = dx + t * (uint64_t)a.stride + hs.first * a.dim;
    const T *const raw = (const T *)a.raw + (t * a.heads + hs.first) * a.dim;
    const float rinv = a.stats[i];
    const uint32_t width = hs.count * a.dim;
    float u[N], v[N], p[N], q[N], low[N], high[N], sum = 0.0f;
    each_pairs(a, width, [&](const rlhf__rope_part &s, uint32_t c, uint32_t at) {
        pairs_back<T, WIDE>(s, line + at, raw + at, turn, rinv, c, u, v, p, q);
        rlhf__load<WIDE>(low, gamma + at + s.at, c, s.half);
        rlhf__load<WIDE>(high, gamma + at + s.at + s.half, c, s.half);
        for (int j = 0; j < N; j++)
            sum = fmaf((a.offset + high[j]) * v[j], q[j],
                       fmaf((a.offset + low[j]) * u[j], p[j], sum));
    });
    sum = rlhf__warp_sum(sum) / (float)width;
    each_pairs(a, width, [&](const rlhf__rope_part &s, uint32_t c, uint32_t at) {
        pairs_back<T, WIDE>(s, line + at, raw + at, turn, rinv, c, u, v, p, q);
        rlhf__load<WIDE>(low, gamma + at + s.at, c, s.half);
        rlhf__load<WIDE>(high, gamma + at + s.at + s.half, c, s.half);
        for (int j = 0; j < N; j++) {
            u[j] = fmaf(-p[j], sum, (a.offset + low[j]) * u[j]) * rinv;
            v[j] = fmaf(-q[j], sum, (a.offset + high[j]) * v[j]) * rinv;
        }
        rlhf__store<WIDE>(line + at + s.at, u, c, s.half);
        rlhf__store<WIDE>(line + at + s.at + s.half, v, c, s.half);
    });
}

// ---- dgamma, before dx is overwritten ----
//
// A norm of each head: a chunk is 16 rows; its heads are numbered row by row. A block computes 128
// pairs of the part that is rotated or, if blockIdx.y is at least `turning`, of the rest. Its warp
// w adds up heads w, w + 8, ... of the chunk, with separate sums for query heads and key heads. The
// sums of the warps are then added in order; parts.h adds the sums of the chunks.

template <class T, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS)
    rope_bwd_sums(rlhf__rope_args a, const T *dx, float *part, uint32_t turning) {
    SHARED(float[WARPS][KINDS][2][PAIRS], of_warps);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool rest = blockIdx.y >= turning;
    const rlhf__rope_part own = rlhf__rope_part_of(a, rest);
    const uint32_t c0 = (blockIdx.y - (rest ? turning : 0)) * PAIRS, c = c0 + lane * N;
    const uint64_t first = (uint64_t)blockIdx.x * CHUNK,
                   end = first + CHUNK < a.rows ? first + CHUNK : a.rows;
    float sums[KINDS][2][N] = {}, u[N], v[N], p[N], q[N];
    for (uint64_t i = first * a.heads + warp; i < end * a.heads; i += WARPS) {
        const uint64_t t = i / a.heads, h = i % a.heads;
        const float *const turn = rlhf__rope_at(a, t, false);
        if (!turn || c >= own.half) continue;
        const T *const line = dx + t * (uint64_t)a.stride + h * a.dim;
        pairs_back<T, WIDE>(own, line, (const T *)a.raw + i * a.dim, turn, a.stats[i], c, u, v, p,
                            q);
        for (int j = 0; j < N; j++) {
            const float low = u[j] * p[j], high = v[j] * q[j];
            const bool query = h < a.queries;
            sums[0][0][j] += query ? low : 0.0f;
            sums[0][1][j] += query ? high : 0.0f;
            sums[1][0][j] += query ? 0.0f : low;
            sums[1][1][j] += query ? 0.0f : high;
        }
    }
    for (int k = 0; k < KINDS; k++)
        for (int s = 0; s < 2; s++)
            rlhf__wide_put(&of_warps[warp][k][s][lane * N], sums[k][s]);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < KINDS * 2 * PAIRS; i += 32 * WARPS) {
        const uint32_t k = i / (2 * PAIRS), s = i / PAIRS % 2, at = i % PAIRS;
        if (c0 + at >= own.half) continue;
        float sum = of_warps[0][k][s][at];
        for (int w = 1; w < WARPS; w++)
            sum += of_warps[w][k][s][at];
        part[((uint64_t)blockIdx.x * KINDS + k) * a.dim + own.at + s * own.half + c0 + at] = sum;
    }
}

// Norms of whole rows: as above, but a block computes pairs of one head, h, and its warp w adds up
// rows w, w + 8 of the chunk. part_q is [chunks, queries * dim], part_k [chunks, keys * dim].
template <class T, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS)
    rope_bwd_whole_sums(rlhf__rope_args a, const T *dx, float *part_q, float *part_k,
                        uint32_t turning) {
    SHARED(float[WARPS][2][PAIRS], of_warps);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, h = blockIdx.z;
    const bool rest = blockIdx.y >= turning;
    const rlhf__rope_part own = rlhf__rope_part_of(a, rest);
    const uint32_t c0 = (blockIdx.y - (rest ? turning : 0)) * PAIRS, c = c0 + lane * N;
    const uint64_t first = (uint64_t)blockIdx.x * CHUNK,
                   end = first + CHUNK < a.rows ? first + CHUNK : a.rows;
    float sums[2][N] = {}, u[N], v[N], p[N], q[N];
    for (uint64_t t = first + warp; t < end; t += WARPS) {
        const float *const turn = rlhf__rope_at(a, t, false);
        if (!turn || c >= own.half) continue;
        const T *const line = dx + t * (uint64_t)a.stride + h * a.dim;
        const T *const raw = (const T *)a.raw + (t * a.heads + h) * a.dim;
        const float rinv = a.stats[t * 2 + (h < a.queries ? 0 : 1)];
        pairs_back<T, WIDE>(own, line, raw, turn, rinv, c, u, v, p, q);
        for (int j = 0; j < N; j++) {
            sums[0][j] += u[j] * p[j];
            sums[1][j] += v[j] * q[j];
        }
    }
    for (int s = 0; s < 2; s++)
        rlhf__wide_put(&of_warps[warp][s][lane * N], sums[s]);
    __syncthreads();
    const uint32_t keys = a.heads - a.queries;
    float *const to = h < a.queries
                          ? part_q + ((uint64_t)blockIdx.x * a.queries + h) * a.dim
                          : part_k + ((uint64_t)blockIdx.x * keys + h - a.queries) * a.dim;
    for (uint32_t i = threadIdx.x; i < 2 * PAIRS; i += 32 * WARPS) {
        const uint32_t s = i / PAIRS, at = i % PAIRS;
        if (c0 + at >= own.half) continue;
        float sum = of_warps[0][s][at];
        for (int w = 1; w < WARPS; w++)
            sum += of_warps[w][s][at];
        to[own.at + s * own.half + c0 + at] = sum;
    }
}

static uint32_t chunks_of(uint32_t rows) { return (rows + CHUNK - 1) / CHUNK; }

// The size in bytes of the chunks' sums: with `whole`, every head has a gamma of its own.
static uint64_t parts_bytes(uint32_t rows, bool whole, uint64_t heads, uint64_t head_dim) {
    const uint64_t gammas = whole ? heads : (uint64_t)KINDS;
    return (uint64_t)chunks_of(rows) * gammas * head_dim * sizeof(float);
}

void rlhf__cuda_needs_rope_bwd(struct rlhf__cuda *cu, const rlhf_call *c,
                               struct rlhf__cuda_needs *n) {
    rlhf_rope g;
    (void)cu;
    if (c->op != RLHF_COMPUTE_OP(rope_bwd) || !c->rope || !(c->flags & RLHF_CALL_PARAM_GRAD))
        return;
    if (rlhf_copy_in(&g, sizeof g, c->rope, RLHF_SIZE_TO(rlhf_rope, stats)) < 0) return;
    const uint64_t heads = (uint64_t)g.heads + (uint64_t)(g.kv_heads ? g.kv_heads : g.heads);
    rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL,
                    parts_bytes(c->rows, g.whole != 0, heads, (uint64_t)g.head_dim));
}

// Adds the derivatives of the gammas to dgamma.
template <class T>
static rlhf_status sums_back(struct rlhf__cuda *cu, const struct rlhf__rope_args *a, const T *dx,
                             float *const dgamma[KINDS]) {
    const uint32_t chunks = chunks_of(a->rows), turning = (a->half + PAIRS - 1) / PAIRS;
    const uint32_t pieces = turning + (a->rest + PAIRS - 1) / PAIRS;
    const bool wide = rlhf__rope_aligned<N>(*a, dx);
    const dim3 block(32 * WARPS);
    void *ws = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL,
                                  parts_bytes(a->rows, a->whole, a->heads, a->dim), &ws));
    float *const part = (float *)ws;
    if (!a->whole) {
        RUN(cu, (wide ? rope_bwd_sums<T, true> : rope_bwd_sums<T, false>), dim3(chunks, pieces),
            block, 0, *a, dx, part, turning);
        return rlhf__cuda_add_parts(cu, dgamma, part, chunks, KINDS, a->dim);
    }
    const uint32_t of_q = a->queries * a->dim, of_k = (a->heads - a->queries) * a->dim;
    float *const part_k = part + (uint64_t)chunks * of_q;
    RUN(cu, (wide ? rope_bwd_whole_sums<T, true> : rope_bwd_whole_sums<T, false>),
        dim3(chunks, pieces, a->heads), block, 0, *a, dx, part, part_k, turning);
    if (dgamma[0]) RLHF_TRY(rlhf__cuda_add_parts(cu, dgamma, part, chunks, 1, of_q));
    return dgamma[1] ? rlhf__cuda_add_parts(cu, dgamma + 1, part_k, chunks, 1, of_k) : RLHF_OK;
}

template <class T>
static rlhf_status norm_back(struct rlhf__cuda *cu, const struct rlhf__rope_args *a, T *dx,
                             float *const dgamma[KINDS]) {
    const uint64_t n = (uint64_t)a->rows * a->norms;
    const bool wide = rlhf__rope_aligned<N>(*a, dx);
    if (dgamma[0] || dgamma[1]) RLHF_TRY(sums_back(cu, a, (const T *)dx, dgamma));
    RUN(cu, (wide ? rope_bwd_dx<T, true> : rope_bwd_dx<T, false>),
        dim3((unsigned)((n + WARPS - 1) / WARPS)), dim3(32 * WARPS), 0, *a, dx);
    return RLHF_OK;
}

static rlhf_status rope_bwd(void *ctx, const rlhf_rope *from, rlhf_dev dx, rlhf_dev dgamma_q,
                            rlhf_dev dgamma_k, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    struct rlhf__rope_args a;
    int32_t dtype;
    RLHF_TRY(rlhf__rope_read(cu, "rope_bwd", &a, from, rows, &dtype));
    if (a.gamma_q ? !a.raw : dgamma_q || dgamma_k)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "rope_bwd: %s",
                               a.gamma_q ? "raw and stats are NULL with gamma"
                                         : "dgamma is there without gamma");
    if (!rows) return RLHF_OK;
    a.code = RLHF__FAULT_ROPE_BWD_POS;
    float *const dgamma[KINDS] = {rlhf__cuda_f32(dgamma_q), rlhf__cuda_f32(dgamma_k)};
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(dx), rows * (uint64_t)a.stride * rlhf_dtype_size(dtype));
    if (!a.gamma_q)
        RLHF_TRY(rlhf__rope_turn(cu, &a, dx, dtype, 1));
    else if (dtype == RLHF_BF16)
        RLHF_TRY(norm_back(cu, &a, rlhf__cuda_mem<rlhf__bf16>(dx), dgamma));
    else
        RLHF_TRY(norm_back(cu, &a, rlhf__cuda_f32(dx), dgamma));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_rope_bwd(rlhf_compute *t) { t->rope_bwd = rope_bwd; }
