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

// ---- dx: a warp per head; of each part, lane l has pairs 128 g + 4 l .. + 3, g = 0, 1, ... ----

template <class T, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS) rope_bwd_dx(rlhf__rope_args a, T *dx) {
    const uint64_t i = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const uint64_t t = i / a.heads, h = i % a.heads;
    const uint32_t lane = threadIdx.x % 32;
    if (t >= a.rows) return; // the whole warp returns
    const float *const turn = rlhf__rope_at(a, t, h == 0 && lane == 0);
    if (!turn) return; // the whole warp returns
    const float *const gamma = h < a.queries ? a.gamma_q : a.gamma_k;
    T *const line = dx + t * (uint64_t)a.stride + h * a.dim;
    const T *const raw = (const T *)a.raw + i * a.dim;
    const float rinv = a.stats[i];
    float u[N], v[N], p[N], q[N], low[N], high[N], sum = 0.0f;
    for (int rest = 0; rest < 2; rest++) {
        const rlhf__rope_part s = rlhf__rope_part_of(a, rest);
        for (uint32_t c = lane * N; c < s.half; c += PAIRS) {
            pairs_back<T, WIDE>(s, line, raw, turn, rinv, c, u, v, p, q);
            rlhf__load<WIDE>(low, gamma + s.at, c, s.half);
            rlhf__load<WIDE>(high, gamma + s.at + s.half, c, s.half);
            for (int j = 0; j < N; j++)
                sum = fmaf((a.offset + high[j]) * v[j], q[j],
                           fmaf((a.offset + low[j]) * u[j], p[j], sum));
        }
    }
    sum = rlhf__warp_sum(sum) / (float)a.dim;
    for (int rest = 0; rest < 2; rest++) {
        const rlhf__rope_part s = rlhf__rope_part_of(a, rest);
        for (uint32_t c = lane * N; c < s.half; c += PAIRS) {
            pairs_back<T, WIDE>(s, line, raw, turn, rinv, c, u, v, p, q);
            rlhf__load<WIDE>(low, gamma + s.at, c, s.half);
            rlhf__load<WIDE>(high, gamma + s.at + s.half, c, s.half);
            for (int j = 0; j < N; j++) {
                u[j] = fmaf(-p[j], sum, (a.offset + low[j]) * u[j]) * rinv;
                v[j] = fmaf(-q[j], sum, (a.offset + high[j]) * v[j]) * rinv;
            }
            rlhf__store<WIDE>(line + s.at, u, c, s.half);
            rlhf__store<WIDE>(line + s.at + s.half, v, c, s.half);
        }
    }
}

// ---- dgamma, before dx is overwritten ----
//
// A chunk is 16 rows; its heads are numbered row by row. A block computes 128 pairs of the part
// that is rotated or, if blockIdx.y is at least `turning`, of the rest. Its warp w adds up heads w,
// w + 8, ... of the chunk, with separate sums for query heads and key heads. The sums of the warps
// are then added in order; parts.h adds the sums of the chunks.

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

static uint64_t parts_bytes(uint32_t rows, uint64_t head_dim) {
    return (uint64_t)((rows + CHUNK - 1) / CHUNK) * KINDS * head_dim * sizeof(float);
}

void rlhf__cuda_needs_rope_bwd(struct rlhf__cuda *cu, const rlhf_call *c,
                               struct rlhf__cuda_needs *n) {
    (void)cu;
    if (c->op == RLHF_COMPUTE_OP(rope_bwd) && c->rope && c->flags & RLHF_CALL_PARAM_GRAD)
        rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL,
                        parts_bytes(c->rows, (uint64_t)c->rope->head_dim));
}

template <class T>
static rlhf_status norm_back(struct rlhf__cuda *cu, const struct rlhf__rope_args *a, T *dx,
                             float *const dgamma[KINDS]) {
    const uint64_t n = (uint64_t)a->rows * a->heads;
    const uint32_t chunks = (a->rows + CHUNK - 1) / CHUNK;
    const bool wide = rlhf__rope_aligned<N>(*a, dx);
    const dim3 block(32 * WARPS);
    if (dgamma[0] || dgamma[1]) {
        void *part = NULL;
        RLHF_TRY(
            rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL, parts_bytes(a->rows, a->dim), &part));
        const uint32_t turning = (a->half + PAIRS - 1) / PAIRS;
        RUN(cu, (wide ? rope_bwd_sums<T, true> : rope_bwd_sums<T, false>),
            dim3(chunks, turning + (a->rest + PAIRS - 1) / PAIRS), block, 0, *a, (const T *)dx,
            (float *)part, turning);
        RLHF_TRY(rlhf__cuda_add_parts(cu, dgamma, (const float *)part, chunks, KINDS, a->dim));
    }
    RUN(cu, (wide ? rope_bwd_dx<T, true> : rope_bwd_dx<T, false>),
        dim3((unsigned)((n + WARPS - 1) / WARPS)), block, 0, *a, dx);
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
