// norm.cu: LayerNorm, forward and backward.
#include "machine/table.h"
#include "row/norm_row.h"
#include "row/parts.h"

enum { N = RLHF__NORM_N, COLUMNS = RLHF__NORM_COLUMNS, FORWARD_WARPS = 4, WARPS = 8, CHUNK = 64 };

// ---- forward ----

template <class T, int GROUPS, bool WIDE>
static __global__ void __launch_bounds__(32 * FORWARD_WARPS)
    norm_rows(T *out, float *stats, const float *x, const float *gamma, const float *beta,
              float eps, uint32_t rows, uint32_t d) {
    const uint64_t t = (uint64_t)blockIdx.x * FORWARD_WARPS + threadIdx.x / 32;
    if (t >= rows) return; // the whole warp returns
    const rlhf__norm_row<float, GROUPS, WIDE> row(x + t * d, d);
    float v[N], scale[N], shift[N], sum = 0.0f, square = 0.0f;
#pragma unroll
    for (int g = 0; g < row.groups(); g++) {
        row.get(v, g);
        for (int j = 0; j < N; j++)
            if (row.has(g, j)) sum += v[j];
    }
    const float mean = rlhf__warp_sum(sum) / (float)d;
#pragma unroll
    for (int g = 0; g < row.groups(); g++) {
        row.get(v, g);
        for (int j = 0; j < N; j++)
            if (row.has(g, j)) square = fmaf(v[j] - mean, v[j] - mean, square);
    }
    const float rstd = 1.0f / sqrtf(rlhf__warp_sum(square) / (float)d + eps);
#pragma unroll
    for (int g = 0; g < row.groups(); g++) {
        row.get(v, g);
        rlhf__load<WIDE>(scale, gamma, row.at(g), d);
        rlhf__load<WIDE>(shift, beta, row.at(g), d);
        for (int j = 0; j < N; j++)
            v[j] = fmaf(scale[j], (v[j] - mean) * rstd, shift[j]);
        rlhf__store<WIDE>(out + t * d, v, row.at(g), d);
    }
    if (stats && row.lane == 0) {
        stats[2 * t] = mean;
        stats[2 * t + 1] = rstd;
    }
}

template <class T>
static rlhf_status norm_as(struct rlhf__cuda *cu, T *out, float *stats, const float *x,
                           const float *gamma, const float *beta, float eps, uint32_t rows,
                           uint32_t d) {
    auto kernel = norm_rows<T, 0, false>;
    if (rlhf__aligned<N>(out, d) && rlhf__aligned<N>(x, d) && rlhf__aligned<N>(gamma, d) &&
        rlhf__aligned<N>(beta, d))
        kernel = d <= 2 * COLUMNS    ? norm_rows<T, 2, true>
                 : d <= 6 * COLUMNS  ? norm_rows<T, 6, true>
                 : d <= 8 * COLUMNS  ? norm_rows<T, 8, true>
                 : d <= 16 * COLUMNS ? norm_rows<T, 16, true>
                                     : norm_rows<T, 0, true>;
    rlhf__cuda_wrote(cu, out, (uint64_t)rows * d * sizeof *out);
    if (stats) rlhf__cuda_wrote(cu, stats, 2ull * rows * sizeof *stats);
    RUN(cu, kernel, dim3((rows + FORWARD_WARPS - 1) / FORWARD_WARPS), dim3(32 * FORWARD_WARPS), 0,
        out, stats, x, gamma, beta, eps, rows, d);
    return rlhf__cuda_done(cu);
}

static rlhf_status norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                        rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "norm", d));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "norm", out_dtype));
    if (!rows) return RLHF_OK;
    float *const s = rlhf__cuda_f32(stats);
    const float *const from = rlhf__cuda_f32(x), *const g = rlhf__cuda_f32(gamma),
                       *const b = rlhf__cuda_f32(beta);
    if (out_dtype == RLHF_BF16)
        return norm_as(cu, rlhf__cuda_mem<rlhf__bf16>(out), s, from, g, b, (float)eps, rows,
                       (uint32_t)d);
    return norm_as(cu, rlhf__cuda_f32(out), s, from, g, b, (float)eps, rows, (uint32_t)d);
}

// ---- backward: dx = (a - mean(a) - xhat mean(a xhat)) rstd with a = gamma dy ----
//
// dgamma and dbeta: a chunk is 64 rows. Warp w sums rows 8 w .. 8 w + 7 of the chunk. Then the sums
// of the 8 warps are added in order. A second kernel adds the sums of the chunks. All orders are
// fixed.

namespace {
struct norm_bwd_args {
    float *dx;
    const float *x, *stats, *gamma;
    float *part; // [chunks, 2, d]: dgamma, dbeta; NULL: skip
    uint32_t rows, d;
    int32_t accumulate;
};
} // namespace

// Compute dx of row t. If sums are requested, add the row's part of dgamma and dbeta to them.
template <class T, int GROUPS, bool WIDE, int SUMS>
static __device__ __forceinline__ void norm_bwd_row(const norm_bwd_args &a, const T *dy, uint64_t t,
                                                    float (&sums)[2][SUMS][N]) {
    const rlhf__norm_row<float, GROUPS, WIDE> x(a.x + t * a.d, a.d);
    const rlhf__norm_row<T, GROUPS, WIDE> y(dy + t * a.d, a.d);
    const float mean = a.stats[2 * t], rstd = a.stats[2 * t + 1];
    float xv[N], yv[N], scale[N], old[N], sum = 0.0f, sum_x = 0.0f;
#pragma unroll
    for (int g = 0; g < x.groups(); g++) {
        x.get(xv, g);
        y.get(yv, g);
        rlhf__load<WIDE>(scale, a.gamma, x.at(g), a.d);
        for (int j = 0; j < N; j++) {
            if (!x.has(g, j)) continue;
            const float xhat = (xv[j] - mean) * rstd;
            sum += scale[j] * yv[j];
            sum_x = fmaf(scale[j] * yv[j], xhat, sum_x);
            if (SUMS > 1) {
                sums[0][SUMS > 1 ? g : 0][j] = fmaf(yv[j], xhat, sums[0][SUMS > 1 ? g : 0][j]);
                sums[1][SUMS > 1 ? g : 0][j] += yv[j];
            }
        }
    }
    sum = rlhf__warp_sum(sum) / (float)a.d;
    sum_x = rlhf__warp_sum(sum_x) / (float)a.d;
#pragma unroll
    for (int g = 0; g < x.groups(); g++) {
        x.get(xv, g);
        y.get(yv, g);
        rlhf__load<WIDE>(scale, a.gamma, x.at(g), a.d);
        if (a.accumulate) rlhf__load<WIDE>(old, a.dx + t * a.d, x.at(g), a.d);
        for (int j = 0; j < N; j++) {
            const float xhat = (xv[j] - mean) * rstd;
            const float v = (scale[j] * yv[j] - fmaf(xhat, sum_x, sum)) * rstd;
            xv[j] = a.accumulate ? old[j] + v : v;
        }
        rlhf__store<WIDE>(a.dx + t * a.d, xv, x.at(g), a.d);
    }
}

// Computes only dx: one warp per row.
template <class T, int GROUPS, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS) norm_bwd_dx(norm_bwd_args a, const T *dy) {
    const uint64_t t = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    float none[2][1][N];
    if (t < a.rows) norm_bwd_row<T, GROUPS, WIDE>(a, dy, t, none);
}

// Computes dx and a chunk's part of the sums, in one pass over x and dy: one block per chunk.
template <class T, int GROUPS>
static __global__ void __launch_bounds__(32 * WARPS) norm_bwd_both(norm_bwd_args a, const T *dy) {
    SHARED(float[WARPS][GROUPS * COLUMNS], of_warps);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint64_t first = (uint64_t)blockIdx.x * CHUNK + warp * (CHUNK / WARPS);
    float sums[2][GROUPS][N];
    for (int k = 0; k < 2; k++)
        for (int g = 0; g < GROUPS; g++)
            for (int j = 0; j < N; j++)
                sums[k][g][j] = 0.0f;
    for (uint64_t t = first; t < first + CHUNK / WARPS && t < a.rows; t++)
        norm_bwd_row<T, GROUPS, true>(a, dy, t, sums);
    float *const part = a.part + (uint64_t)blockIdx.x * 2 * a.d;
    for (int k = 0; k < 2; k++) {
        if (k) __syncthreads(); // after the first sums have been read
        for (int g = 0; g < GROUPS; g++)
            rlhf__wide_put(&of_warps[warp][g * COLUMNS + (int)lane * N], sums[k][g]);
        __syncthreads();
        for (uint32_t c = threadIdx.x; c < a.d; c += 32 * WARPS) {
            float s = of_warps[0][c];
            for (int w = 1; w < WARPS; w++)
                s += of_warps[w][c];
            part[(uint32_t)k * a.d + c] = s;
        }
    }
}

// Computes a chunk's part of dgamma and dbeta, without dx. Used for rows that norm_bwd_both does
// not support. One block computes 128 columns of a chunk.
template <class T, bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS) norm_bwd_sums(norm_bwd_args a, const T *dy) {
    SHARED(float[2][WARPS][COLUMNS], of_warps);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t c0 = blockIdx.y * COLUMNS, c = c0 + lane * N;
    const uint64_t first = (uint64_t)blockIdx.x * CHUNK + warp * (CHUNK / WARPS);
    float g[N] = {0.0f, 0.0f, 0.0f, 0.0f}, b[N] = {0.0f, 0.0f, 0.0f, 0.0f}, x[N], y[N];
    for (uint64_t t = first; t < first + CHUNK / WARPS && t < a.rows; t++) {
        const float mean = a.stats[2 * t], rstd = a.stats[2 * t + 1];
        rlhf__load<WIDE>(x, a.x + t * a.d, c, a.d);
        rlhf__load<WIDE>(y, dy + t * a.d, c, a.d);
        for (int j = 0; j < N; j++) {
            g[j] = fmaf(y[j], (x[j] - mean) * rstd, g[j]);
            b[j] += y[j];
        }
    }
    rlhf__wide_put(&of_warps[0][warp][lane * N], g);
    rlhf__wide_put(&of_warps[1][warp][lane * N], b);
    __syncthreads();
    const uint32_t k = threadIdx.x / COLUMNS, own = threadIdx.x % COLUMNS; // 2 x 128 threads
    if (c0 + own >= a.d) return;
    float s = of_warps[k][0][own];
    for (int w = 1; w < WARPS; w++)
        s += of_warps[k][w][own];
    a.part[((uint64_t)blockIdx.x * 2 + k) * a.d + c0 + own] = s;
}

template <class T>
static rlhf_status norm_bwd_as(struct rlhf__cuda *cu, const norm_bwd_args &a, const T *dy) {
    const dim3 chunks((a.rows + CHUNK - 1) / CHUNK), block(32 * WARPS);
    const dim3 warps((a.rows + WARPS - 1) / WARPS);
    const bool wide = rlhf__aligned<N>(a.dx, a.d) && rlhf__aligned<N>(a.x, a.d) &&
                      rlhf__aligned<N>(a.gamma, a.d) && rlhf__aligned<N>(dy, a.d);
    if (wide && a.part && a.d <= 8 * COLUMNS) {
        RUN(cu,
            (a.d <= 2 * COLUMNS   ? norm_bwd_both<T, 2>
             : a.d <= 6 * COLUMNS ? norm_bwd_both<T, 6>
                                  : norm_bwd_both<T, 8>),
            chunks, block, 0, a, dy);
        return RLHF_OK;
    }
    RUN(cu,
        (!wide                ? norm_bwd_dx<T, 0, false>
         : a.d <= 2 * COLUMNS ? norm_bwd_dx<T, 2, true>
         : a.d <= 8 * COLUMNS ? norm_bwd_dx<T, 8, true>
                              : norm_bwd_dx<T, 0, true>),
        warps, block, 0, a, dy);
    if (!a.part) return RLHF_OK;
    RUN(cu, (wide ? norm_bwd_sums<T, true> : norm_bwd_sums<T, false>),
        dim3(chunks.x, (a.d + COLUMNS - 1) / COLUMNS), block, 0, a, dy);
    return RLHF_OK;
}

static uint64_t parts_bytes(uint32_t rows, uint32_t width) {
    return 2ull * ((rows + CHUNK - 1) / CHUNK) * width * sizeof(float);
}

void rlhf__cuda_needs_norm(struct rlhf__cuda *cu, const rlhf_call *c, struct rlhf__cuda_needs *n) {
    (void)cu;
    if (c->op == RLHF_COMPUTE_OP(norm_bwd) && c->d > 0 && c->flags & RLHF_CALL_PARAM_GRAD)
        rlhf__cuda_need(n, RLHF__CUDA_WS_PARTIAL, parts_bytes(c->rows, (uint32_t)c->d));
}

static rlhf_status norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                            rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                            rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_check_d(cu, "norm_bwd", d));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, "norm_bwd", dy_dtype));
    if (!rows) return RLHF_OK;
    const uint32_t width = (uint32_t)d, chunks = (rows + CHUNK - 1) / CHUNK;
    void *part = NULL;
    if (dgamma || dbeta)
        RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_PARTIAL, parts_bytes(rows, width), &part));
    const norm_bwd_args a = {rlhf__cuda_f32(dx),
                             rlhf__cuda_f32(x),
                             rlhf__cuda_f32(stats),
                             rlhf__cuda_f32(gamma),
                             (float *)part,
                             rows,
                             width,
                             accumulate};
    rlhf__cuda_wrote(cu, a.dx, (uint64_t)rows * width * sizeof(float));
    if (dy_dtype == RLHF_BF16)
        RLHF_TRY(norm_bwd_as(cu, a, rlhf__cuda_mem<rlhf__bf16>(dy)));
    else
        RLHF_TRY(norm_bwd_as(cu, a, rlhf__cuda_f32(dy)));
    if (!part) return rlhf__cuda_done(cu);
    float *const to[2] = {rlhf__cuda_f32(dgamma), rlhf__cuda_f32(dbeta)};
    RLHF_TRY(rlhf__cuda_add_parts(cu, to, a.part, chunks, 2, width));
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_norm(rlhf_compute *t) {
    t->norm = norm;
    t->norm_bwd = norm_bwd;
}
