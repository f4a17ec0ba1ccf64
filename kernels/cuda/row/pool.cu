// pool.cu: the mean, the first or the last token of each row of the batch, and the derivative.
//
// A block of 8 warps computes 128 columns of a row, 4 per lane. For a mean, warp w sums every
// eighth token of the row, starting at token w. Then the 8 sums are added in order. So the result
// of a row depends only on the row.
#include "machine/table.h"
#include "row/lanes.h"

enum { N = 4, WARPS = 8, COLUMNS = 32 * N };

// Returns the number of tokens of row i. If the row is empty or extends past `limit`, raises a
// fault and returns 0.
static __device__ __forceinline__ int64_t tokens_of(const int32_t *offset, uint32_t i,
                                                    int64_t limit, int empty, int beyond,
                                                    struct rlhf__fault *fault) {
    const int32_t a = offset[i], b = offset[i + 1];
    if (a < 0 || b <= a) {
        rlhf__fault_raise(fault, empty, i, a, b);
        return 0;
    }
    if (b > limit) {
        rlhf__fault_raise(fault, beyond, i, b, limit);
        return 0;
    }
    return (int64_t)b - a;
}

template <bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS)
    pool_rows(float *out, const float *x, const int32_t *offset, uint32_t d, int mode,
              int64_t limit, struct rlhf__fault *fault) {
    SHARED(float[WARPS][COLUMNS], part);
    const uint32_t row = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint64_t c = (uint64_t)blockIdx.y * COLUMNS + lane * N;
    const int64_t n =
        tokens_of(offset, row, limit, RLHF__FAULT_POOL_ROW, RLHF__FAULT_POOL_END, fault);
    if (!n) return; // the whole block returns
    const float *from = x + (uint64_t)offset[row] * d;
    float sum[N] = {0.0f, 0.0f, 0.0f, 0.0f}, v[N];
    if (mode != RLHF_POOL_MEAN) {
        if (warp == 0) {
            rlhf__load<WIDE>(v, from + (mode == RLHF_POOL_FIRST ? 0 : (uint64_t)(n - 1) * d), c, d);
            rlhf__store<WIDE>(out + (uint64_t)row * d, v, c, d);
        }
        return;
    }
    for (int64_t t = warp; t < n; t += WARPS) {
        rlhf__load<WIDE>(v, from + (uint64_t)t * d, c, d);
        for (int j = 0; j < N; j++)
            sum[j] += v[j];
    }
    for (int j = 0; j < N; j++)
        part[warp][lane * N + (unsigned)j] = sum[j];
    __syncthreads();
    if (warp) return;
    for (int j = 0; j < N; j++) {
        for (int w = 1; w < WARPS; w++)
            sum[j] += part[w][lane * N + (unsigned)j];
        sum[j] /= (float)n;
    }
    rlhf__store<WIDE>(out + (uint64_t)row * d, sum, c, d);
}

template <bool WIDE>
static __global__ void __launch_bounds__(32 * WARPS)
    pool_bwd_rows(float *dx, const float *dout, const int32_t *offset, uint32_t d, int mode,
                  int64_t limit, struct rlhf__fault *fault) {
    const uint32_t row = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint64_t c = (uint64_t)blockIdx.y * COLUMNS + lane * N;
    const int64_t n =
        tokens_of(offset, row, limit, RLHF__FAULT_POOL_BWD_ROW, RLHF__FAULT_POOL_BWD_END, fault);
    const int64_t one = mode == RLHF_POOL_FIRST ? 0 : n - 1; // this token gets the whole gradient
    const float nothing[N] = {0.0f, 0.0f, 0.0f, 0.0f};
    float g[N];
    if (!n) return;
    rlhf__load<WIDE>(g, dout + (uint64_t)row * d, c, d);
    for (int j = 0; mode == RLHF_POOL_MEAN && j < N; j++)
        g[j] /= (float)n;
    for (int64_t t = warp; t < n; t += WARPS) {
        float *const to = dx + ((uint64_t)offset[row] + (uint64_t)t) * d;
        if (mode == RLHF_POOL_MEAN || t == one)
            rlhf__store<WIDE>(to, g, c, d);
        else
            rlhf__store<WIDE>(to, nothing, c, d);
    }
}

static rlhf_status check_pool(struct rlhf__cuda *cu, const char *op, int32_t d, int32_t mode) {
    RLHF_TRY(rlhf__cuda_check_d(cu, op, d));
    if (mode < RLHF_POOL_MEAN || mode > RLHF_POOL_LAST)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "%s: mode is %d, known are mean 1, first 2 and last 3", op, mode);
    return RLHF_OK;
}

static dim3 grid_for(uint32_t n, uint32_t d) { return dim3(n, (d + COLUMNS - 1) / COLUMNS); }

static rlhf_status pool(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d,
                        int32_t mode) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(check_pool(cu, "pool", d, mode));
    if (!n) return RLHF_OK;
    const uint64_t width = (uint64_t)d, row_bytes = width * sizeof(float);
    float *const o = rlhf__cuda_f32(out);
    const float *const from = rlhf__cuda_f32(x);
    const bool wide = rlhf__aligned<N>(o, width) && rlhf__aligned<N>(from, width);
    rlhf__cuda_wrote(cu, o, n * row_bytes);
    RUN(cu, (wide ? pool_rows<true> : pool_rows<false>), grid_for(n, (uint32_t)d), dim3(32 * WARPS),
        0, o, from, rlhf__cuda_i32(offset), (uint32_t)d, mode,
        (int64_t)(rlhf__cuda_extent(cu, from) / row_bytes), cu->fault);
    return rlhf__cuda_done(cu);
}

static rlhf_status pool_bwd(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                            int32_t d, int32_t mode) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(check_pool(cu, "pool_bwd", d, mode));
    if (!n) return RLHF_OK;
    const uint64_t width = (uint64_t)d, row_bytes = width * sizeof(float);
    float *const to = rlhf__cuda_f32(dx);
    const float *const g = rlhf__cuda_f32(dout);
    const uint64_t extent = rlhf__cuda_extent(cu, to);
    const bool wide = rlhf__aligned<N>(to, width) && rlhf__aligned<N>(g, width);
    rlhf__cuda_wrote(cu, to, extent); // only the device knows how many tokens were written
    RUN(cu, (wide ? pool_bwd_rows<true> : pool_bwd_rows<false>), grid_for(n, (uint32_t)d),
        dim3(32 * WARPS), 0, to, g, rlhf__cuda_i32(offset), (uint32_t)d, mode,
        (int64_t)(extent / row_bytes), cu->fault);
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_pool(rlhf_compute *t) {
    t->pool = pool;
    t->pool_bwd = pool_bwd;
}
