// product_dot.cu: GEMMs with few columns (value and score heads): one warp per row. A lane
// processes eight of every 256 steps of depth, in one chain of fmaf. A tree adds the sums of the
// lanes.
#include "product/product_tile.h"

enum { ROWS = 4, STEP = 8 }; // warps per block; steps that a lane loads at a time

static __device__ __forceinline__ void wide8(float (&v)[STEP], const rlhf__bf16 *x) {
    rlhf__wide_get(v, x);
}
static __device__ __forceinline__ void wide8(float (&v)[STEP], const float *x) {
    float low[4], high[4];
    rlhf__wide_get(low, x);
    rlhf__wide_get(high, x + 4);
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = low[i], v[i + 4] = high[i];
}

// v = x[d .. d + 7]; elements from depth onward are zero.
template <class T>
static __device__ __forceinline__ void take8(float (&v)[STEP], const T *x, unsigned d,
                                             unsigned depth, int wide) {
    if (wide && d + STEP <= depth) {
        wide8(v, x + d);
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < STEP; i++)
        v[i] = d + i < depth ? rlhf__get(x, d + i) : 0.0f;
}

template <class T, int COLS>
static __global__ void __launch_bounds__(32 * ROWS) dot(struct rlhf__tiles p) {
    const unsigned row = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
    const T *x = (const T *)p.left + (uint64_t)(row < p.rows ? row : p.rows - 1) * p.left_ld;
    const T *w = (const T *)p.right;
    float sum[COLS] = {};
    for (unsigned d = lane * STEP; d < p.depth; d += 32 * STEP) {
        float v[STEP];
        take8(v, x, d, p.depth, p.left_wide);
#pragma unroll
        for (int c = 0; c < COLS; c++) {
            if ((unsigned)c >= p.cols) break; // skips reads: the padding of a weight is 0
            float u[STEP];
            take8(u, w + c * p.right_ld, d, p.depth, p.right_wide);
#pragma unroll
            for (int i = 0; i < STEP; i++)
                sum[c] = fmaf(v[i], u[i], sum[c]);
        }
    }
    float mine = 0.0f; // sum of column `lane`
#pragma unroll
    for (int c = 0; c < COLS; c++) {
        if ((unsigned)c >= p.cols) break; // skips a sum of 0
        const float all = rlhf__warp_sum(sum[c]);
        if (lane == (unsigned)c) mine = all;
    }
    if (row >= p.rows || lane >= p.cols) return;
    rlhf__tile_put(p, (uint64_t)row * p.out_ld + lane, p.bias ? mine + p.bias[lane] : mine);
}

template <class T> static rlhf_status run(struct rlhf__cuda *cu, const struct rlhf__tiles *p) {
    const dim3 grid((p->rows + ROWS - 1) / ROWS), block(32 * ROWS);
    if (p->cols == 1)
        RUN(cu, (dot<T, 1>), grid, block, 0, *p);
    else if (p->cols <= 4)
        RUN(cu, (dot<T, 4>), grid, block, 0, *p);
    else
        RUN(cu, (dot<T, RLHF__CUDA_DOT_COLS>), grid, block, 0, *p);
    return RLHF_OK;
}

rlhf_status rlhf__cuda_product_dot(struct rlhf__cuda *cu, const struct rlhf__tiles *p,
                                   int32_t in_dtype) {
    return in_dtype == RLHF_BF16 ? run<rlhf__bf16>(cu, p) : run<float>(cu, p);
}
