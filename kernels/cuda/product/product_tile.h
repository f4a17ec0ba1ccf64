// product_tile.h: the parts that the GEMM kernels have in common: their argument, the order of
// their tiles, and the function that stores a tile of sums.
#ifndef RLHF_CUDA_PRODUCT_TILE_H
#define RLHF_CUDA_PRODUCT_TILE_H

#include "product/product.h"
#include "row/lanes.h"

// A GEMM in the form that kernels use. left_wide and right_wide: the operand's address and ld allow
// 16-byte accesses. out_wide: the same for `out` and, if it is not NULL, for `addend`. These flags
// do not affect the bits.
struct rlhf__tiles {
    const void *left, *right;
    const float *bias, *addend;
    void *out;
    uint64_t left_ld, right_ld, out_ld;
    unsigned rows, cols, depth;
    unsigned tile_rows, tile_cols; // the result in tiles
    unsigned chunk;                // depth that a block sums; blockIdx.y is the index of the chunk
    uint64_t piece;                // number of f32 elements between the results of two chunks
    int left_wide, right_wide, out_wide, out_bf16;
};

// The position of tile `id` of the launch. Tiles are numbered in bands of eight rows of tiles, and
// column by column within a band. So blocks that run at the same time share operands in the L2
// cache.
struct rlhf__tile_at {
    unsigned row, col;
};
static __device__ __forceinline__ struct rlhf__tile_at rlhf__tile_of(const struct rlhf__tiles &p,
                                                                     unsigned id) {
    const unsigned band = 8 * p.tile_cols, first = id / band * 8, in = id % band;
    const unsigned tall = p.tile_rows - first < 8 ? p.tile_rows - first : 8;
    return {first + in % tall, in / tall};
}

// Restricts p to the chunk of depth that this block sums.
template <bool LEFT_ACROSS, bool RIGHT_ACROSS, class T>
static __device__ __forceinline__ void rlhf__tile_chunk(struct rlhf__tiles &p) {
    const unsigned from = blockIdx.y * p.chunk;
    p.left = (const T *)p.left + (uint64_t)from * (LEFT_ACROSS ? p.left_ld : 1);
    p.right = (const T *)p.right + (uint64_t)from * (RIGHT_ACROSS ? p.right_ld : 1);
    p.out = (char *)p.out + blockIdx.y * p.piece * sizeof(float);
    p.depth = p.depth - from < p.chunk ? p.depth - from : p.chunk;
}

// Converts the sum of one element to an output.
static __device__ __forceinline__ void rlhf__tile_put(const struct rlhf__tiles &p, uint64_t at,
                                                      float v) {
    if (p.addend) v = p.addend[at] + v;
    if (p.out_bf16)
        rlhf__put((rlhf__bf16 *)p.out, at, v);
    else
        ((float *)p.out)[at] = v;
}

// Add the addend, if any, to eight sums and store them in out[at ..]. All eight elements must be
// inside the result, and their address aligned to 16 bytes.
static __device__ __forceinline__ void rlhf__tile_put8(const struct rlhf__tiles &p, uint64_t at,
                                                       float (&v)[8]) {
#pragma unroll
    for (int i = 0; p.addend && i < 8; i += 4) {
        float a[4];
        rlhf__wide_get(a, p.addend + at + i);
        v[i] = a[0] + v[i], v[i + 1] = a[1] + v[i + 1];
        v[i + 2] = a[2] + v[i + 2], v[i + 3] = a[3] + v[i + 3];
    }
    if (p.out_bf16) {
        rlhf__wide_put((rlhf__bf16 *)p.out + at, v);
        return;
    }
    const float low[4] = {v[0], v[1], v[2], v[3]}, high[4] = {v[4], v[5], v[6], v[7]};
    rlhf__wide_put((float *)p.out + at, low);
    rlhf__wide_put((float *)p.out + at + 4, high);
}

// Store a tile of sums [BM, BN] from shared memory, where its rows are BN + 8 elements apart. Each
// thread stores 8 columns, so adjacent threads together write whole rows of the tile. THREADS must
// be a multiple of BN / 8.
template <int BM, int BN, int THREADS>
static __device__ __forceinline__ void
rlhf__tile_out(const struct rlhf__tiles &p, const float *sums, unsigned row0, unsigned col0) {
    const unsigned per = BN / 8, col = threadIdx.x % per * 8, c = col0 + col;
    if (c >= p.cols) return;
    const unsigned n = p.cols - c < 8 ? p.cols - c : 8; // fewer at the right edge
    float bias[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        bias[i] = p.bias && (unsigned)i < n ? p.bias[c + i] : 0.0f;
    for (unsigned r = threadIdx.x / per; r < BM && row0 + r < p.rows; r += THREADS / per) {
        const float *s = sums + r * (BN + 8) + col;
        const uint64_t at = (uint64_t)(row0 + r) * p.out_ld + c;
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = p.bias ? s[i] + bias[i] : s[i];
        if (p.out_wide && n == 8) {
            rlhf__tile_put8(p, at, v);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            if ((unsigned)i < n) rlhf__tile_put(p, at + i, v[i]);
    }
}

static inline dim3 rlhf__tile_grid(const struct rlhf__tiles *p) {
    return dim3(p->tile_rows * p->tile_cols, p->depth ? (p->depth + p->chunk - 1) / p->chunk : 1);
}

// The kernels that product.cu uses. product.h describes `tile`. The caller sets tile_rows and
// tile_cols of p to the size of the result in these tiles. [step]
rlhf_status rlhf__cuda_product_bf16(struct rlhf__cuda *cu, struct rlhf__tiles *p, int left_across,
                                    int right_across, int tile);
rlhf_status rlhf__cuda_product_f32(struct rlhf__cuda *cu, struct rlhf__tiles *p, int left_across,
                                   int right_across, int tile);
// For GEMMs of at most RLHF__CUDA_DOT_COLS columns. Both operands must be contiguous along depth.
// One warp computes one row.
#define RLHF__CUDA_DOT_COLS 16
rlhf_status rlhf__cuda_product_dot(struct rlhf__cuda *cu, const struct rlhf__tiles *p,
                                   int32_t in_dtype);

#endif
