// product_dot.cu: products with few columns (value and score heads): a warp makes a row, every lane
// a chain over its own steps of depth, then a tree.
#include "product_tile.h"

enum { ROWS = 4 }; // warps of a block

template <class T, int COLS>
static __global__ void __launch_bounds__(32 * ROWS) dot(struct rlhf__tiles p) {
    const unsigned row = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
    const T *x = (const T *)p.left + (uint64_t)(row < p.rows ? row : p.rows - 1) * p.left_ld;
    const T *w = (const T *)p.right;
    float sum[COLS] = {};
#pragma unroll 2
    for (unsigned d = lane; d < p.depth; d += 32) {
        const float v = rlhf__get(x, d);
#pragma unroll
        for (int c = 0; c < COLS; c++)
            if ((unsigned)c < p.cols) sum[c] = fmaf(v, rlhf__get(w, c * p.right_ld + d), sum[c]);
    }
    float mine = 0.0f; // column `lane`
#pragma unroll
    for (int c = 0; c < COLS; c++) {
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
