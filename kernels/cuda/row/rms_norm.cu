// rms_norm.cu: RMS norm (Zhang and Sennrich 2019), forward and backward.
#include "machine/table.h"
#include "row/norm_row.h"
#include "row/parts.h"

enum { N = RLHF__NORM_N, COLUMNS = RLHF__NORM_COLUMNS, WARPS = 4, CHUNK = 64 };

// ---- forward ----

template <class T, int GROUPS, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS)
    rms_rows(T *out, float *stats, const float *x, const float *gamma, float offset, float eps,
             uint32_t rows, uint32_t d) {
    const uint64_t t = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (t >= rows) return; // the whole warp returns
    const rlhf__norm_row<float, GROUPS, WIDE> row(x + t * d, d);
    float v[N], scale[N], square = 0.0f;
#pragma unroll
    for (int g = 0; g < row.groups(); g++) {
        row.get(v, g); // 0 past the end of the row
        for (int j = 0; j < N; j++)
            square = fmaf(v[j], v[j], square);
    }
    const float rinv = 1.0f / sqrtf(rlhf__warp_sum(square) / (float)d + eps);
#pragma unroll
    for (int g = 0; g < row.groups(); g++) {
        row.get(v, g);
        rlhf__load<WIDE>(scale, gamma, row.at(g), d);
        for (int j = 0; j < N; j++)
            v[j] = (offset + scale[j]) * (v[j] * rinv);
        rlhf__store<WIDE>(out + t * d, v, row.at(g), d);
    }
    if (stats && row.lane == 0) stats[t] = rinv;
}

template <class T>
static rlhf_status rms_as(struct rlhf__cuda *cu, T *out, float *stats, const float *x,
                          const float *gamma, float offset, float eps, uint32_t rows, uint32_t d) {
    auto kernel = rms_rows<T, 0, false>;
    if (rlhf__aligned<N>(out, d) && rlhf__aligned<N>(x, d) && rlhf__aligned<N>(gamma, d))
        kernel = d <= 2 * COLUMNS    ? rms_rows<T, 2, true>
                 : d <= 8 * COLUMNS  ? rms_rows<T, 8, true>
                 : d <= 16 * COLUMNS ? rms_rows<T, 16, true>
                                     : rms_rows<T, 0, true>;
    rlhf__cuda_wrote(cu, out, (uint64_t)rows * d * sizeof *out);
    if (stats) rlhf__cuda_wrote(cu, stats, rows * sizeof *stats);
    RUN(cu, kernel, dim3((rows + WARPS - 1) / WARPS), dim3(32 * WARPS), 0, out, stats, x, gamma,
        offset, eps, rows, d);
    return rlhf__cuda_done(cu);
}

static rlhf_status rms_norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                            rlhf_dev gamma, double offset, double eps, uint32_t rows, int32_t d) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "rms_norm", d));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "rms_norm", out_dtype));
    if (!rows) return RLHF_OK;
    float *const s = rlhf__cuda_f32(stats);
    const float *const from = rlhf__cuda_f32(x), *const g = rlhf__cuda_f32(gamma);
    if (out_dtype == RLHF_BF16)
        return rms_as(cu, rlhf__cuda_mem<rlhf__bf16>(out), s, from, g, (float)offset, (float)eps,
                      rows, (uint32_t)d);
    return rms_as(cu, rlhf__cuda_f32(out), s, from, g, (float)offset, (float)eps, rows,
                  (uint32_t)d);
}

// ---- backward: dx = (a - xhat mean(a xhat)) r with a = (offset + gamma) dy, xhat = x r ----
//
// dgamma: a chunk is 64 rows. Warp w sums rows 16 w .. 16 w + 15 of the chunk. Then the sums of the
// 4 warps are added in order. parts.h adds the sums of the chunks. All orders are fixed.

namespace {
struct rms_bwd_args {
    float *dx;
    const float *x, *stats, *gamma;
    float offset;
    float *part; // [chunks, d]; NULL: skip
    uint32_t rows, d;
    int32_t accumulate;
};
} // namespace

// Compute dx of row t. If sums are requested, add the row's part of dgamma to them.
template <class T, int GROUPS, bool WIDE, int SUMS>
static __device__ __forceinline__ void rms_bwd_row(const rms_bwd_args &a, const T *dy, uint64_t t,
                                                   float (&sums)[SUMS][N]) {
    const rlhf__norm_row<float, GROUPS, WIDE> x(a.x + t * a.d, a.d);
    const rlhf__norm_row<T, GROUPS, WIDE> y(dy + t * a.d, a.d);
    const float rinv = a.stats[t];
    float xv[N], yv[N], scale[N], old[N], sum = 0.0f;
#pragma unroll
    for (int g = 0; g < x.groups(); g++) {
        x.get(xv, g);
        y.get(yv, g);
        rlhf__load<WIDE>(scale, a.gamma, x.at(g), a.d);
        for (int j = 0; j < N; j++) {
            const float xhat = xv[j] * rinv;
            sum = fmaf((a.offset + scale[j]) * yv[j], xhat, sum);
            if (SUMS > 1) sums[SUMS > 1 ? g : 0][j] = fmaf(yv[j], xhat, sums[SUMS > 1 ? g : 0][j]);
        }
    }
    sum = rlhf__warp_sum(sum) / (float)a.d;
#pragma unroll
    for (int g = 0; g < x.groups(); g++) {
        x.get(xv, g);
        y.get(yv, g);
        rlhf__load<WIDE>(scale, a.gamma, x.at(g), a.d);
        if (a.accumulate) rlhf__load<WIDE>(old, a.dx + t * a.d, x.at(g), a.d);
        for (int j = 0; j < N; j++) {
            const float v = fmaf(-(xv[j] * rinv), sum, (a.offset + scale[j]) * yv[j]) * rinv;
            xv[j] = a.accumulate ? old[j] + v : v;
        }
        rlhf__store<WIDE>(a.dx + t * a.d, xv, x.at(g), a.d);
    }
}

// Computes only dx: one warp per row.
template <class T, int GROUPS, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS) rms_bwd_dx(rms_bwd_args a, const T *dy) {
    const uint64_t t = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float none[1][N];
    if (t < a.rows) rms_bwd_row<T, GROUPS, WIDE>(a, dy, t, none);
}

// Computes dx and the sums of a chunk, in one pass over x and dy: one block per chunk.
template <class T, int GROUPS>
static __global__ void __launch_bounds__(32 * WARPS) rms_bwd_both(rms_bwd_args a, const T *dy) {
    SHARED(float[WARPS][GROUPS * COLUMNS], of_warps);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint64_t first = (uint64_t)blockIdx.x * CHUNK + warp * (CHUNK / WARPS);
    float sums[GROUPS][N];
    for (int g = 0; g < GROUPS; g++)
        for (int j = 0; j < N; j++)
            sums[g][j] = 0.0f;
    for (uint64_t t = first; t < first + CHUNK / WARPS && t < a.rows; t++)
        rms_bwd_row<T, GROUPS, true>(a, dy, t, sums);
    for (int g = 0; g < GROUPS; g++)
        rlhf__wide_put(&of_warps[warp][g * COLUMNS + (int)lane * N], sums[g]);
    __syncthreads();
    for (uint32_t c = threadIdx.x; c < a.d; c += 32 * WARPS) {
        float s = of_warps[0][c];
        for (int w = 1; w < WARPS; w++)
            s += of_warps[w][c];
        a.part[(uint64_t)blockIdx.x * a.d + c] = s;
    }
}

// Computes a chunk's part of dgamma, without dx. Used for rows that rms_bwd_both does not support.
// One block computes 128 columns of a chunk.
template <class T, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS) rms_bwd_sums(rms_bwd_args a, const T *dy) {
    SHARED(float[WARPS][COLUMNS], of_warps);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t c0 = blockIdx.y * COLUMNS, c = c0 + lane * N;
    const uint64_t first = (uint64_t)blockIdx.x * CHUNK + warp * (CHUNK / WARPS);
    float g[N] = {0.0f, 0.0f, 0.0f, 0.0f}, x[N], y[N];
    for (uint64_t t = first; t < first + CHUNK / WARPS && t < a.rows; t++) {
        const float rinv = a.stats[t];
        rlhf__load<WIDE>(x, a.x + t * a.d, c, a.d);
        rlhf__load<WIDE>(y, dy + t * a.d, c, a.d);
        for (int j = 0; j < N; j++)
            g[j] = fmaf(y[j], x[j] * rinv, g[j]);
    }
    rlhf__wide_put(&of_warps[warp][lane * N], g);
    __syncthreads();
    if (c0 + threadIdx.x >= a.d) return; // each of the 128 threads has one column
    float s = of_warps[0][threadIdx.x];
    for (int w = 1; w < WARPS; w++)
        s += of_warps[w][threadIdx.x];
    a.part[(uint64_t)blockIdx.x * a.d + c0 + threadIdx.x] = s;
}

template <class T>
static rlhf_status rms_bwd_as(struct rlhf__cuda *cu, const rms_bwd_args &a, const T *dy) {
    const dim3 chunks((a.rows + CHUNK - 1) / CHUNK), block(32 * WARPS);
    const dim3 warps((a.rows + WARPS - 1) / WARPS);
    const bool wide = rlhf__aligned<N>(a.dx, a.d) && rlhf__aligned<N>(a.x, a.d) &&
                      rlhf__aligned<N>(a.gamma, a.d) && rlhf__aligned<N>(dy, a.d);
    if (wide && a.part && a.d <= 8 * COLUMNS) {
        RUN(cu, (a.d <= 2 * COLUMNS ? rms_bwd_both<T, 2> : rms_bwd_both<T, 8>), chunks, block, 0, a,
            dy);
        return RLHF_OK;
    }
    RUN(cu,
        (!wide                ? rms_bwd_dx<T, 0, false>
         : a.d <= 2 * COLUMNS ? rms_bwd_dx<T, 2, true>
         : a.d <= 8 * COLUMNS ? rms_bwd_dx<T, 8, true>
                              : rms_bwd_dx<T, 0, true>),
        warps, block, 0, a, dy);
    if (!a.part) return RLHF_OK;
    RUN(cu, (wide ? rms_bwd_sums<T, true> : rms_bwd_sums<T, false>),
        dim3(chunks.x, (a.d + COLUMNS - 1) / COLUMNS), block, 0, a, dy);
    return RLHF_OK;
}

static uint64_t parts_bytes(uint32_t rows, uint32_t width) {
    return (uint64_t)((rows + CHUNK - 1) / CHUNK) * width * sizeof(float);
}

void rlhf__cuda_needs_rms_norm(struct rlhf__cuda *cu, const rlhf_call *c,
                               struct rlhf__cuda_needs *n) {
    (void)cu;
    if (c->op == RLHF_COMPUTE_OP(rms_norm_bwd) && c->d > 0 && c->flags & RLHF_CALL_PARAM_GRAD)
        rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL, parts_bytes(c->rows, (uint32_t)c->d));
}

static rlhf_status rms_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                                rlhf_dev dy, int32_t dy_dtype, rlhf_dev x, rlhf_dev stats,
                                rlhf_dev gamma, double offset, uint32_t rows, int32_t d) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "rms_norm_bwd", d));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "rms_norm_bwd", dy_dtype));
    if (!rows) return RLHF_OK;
    const uint32_t width = (uint32_t)d, chunks = (rows + CHUNK - 1) / CHUNK;
    void *part = NULL;
    if (dgamma)
        RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL, parts_bytes(rows, width), &part));
    const rms_bwd_args a = {rlhf__cuda_f32(dx),
                            rlhf__cuda_f32(x),
                            rlhf__cuda_f32(stats),
                            rlhf__cuda_f32(gamma),
                            (float)offset,
                            (float *)part,
                            rows,
                            width,
                            accumulate};
    rlhf__cuda_wrote(cu, a.dx, (uint64_t)rows * width * sizeof(float));
    if (dy_dtype == RLHF_BF16)
        RLHF_TRY(rms_bwd_as(cu, a, rlhf__cuda_mem<rlhf__bf16>(dy)));
    else
        RLHF_TRY(rms_bwd_as(cu, a, rlhf__cuda_f32(dy)));
    float *const to[2] = {rlhf__cuda_f32(dgamma), NULL};
    if (part) RLHF_TRY(rlhf__cuda_add_parts(cu, to, a.part, chunks, 1, width));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_rms_norm(rlhf_compute *t) {
    t->rms_norm = rms_norm;
    t->rms_norm_bwd = rms_norm_bwd;
}
