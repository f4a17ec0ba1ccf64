// product_tile.h: what the product kernels share: their argument, the order of their tiles and the
// way a tile of sums leaves.
#ifndef RLHF_CUDA_PRODUCT_TILE_H
#define RLHF_CUDA_PRODUCT_TILE_H

#include "product.h"

// A product as its kernel sees it. Wide: base and ld let 16 bytes (four floats of the addend) be
// taken at once; the other way gives the same bits.
struct rlhf__tiles {
    const void *left, *right;
    const float *bias, *addend;
    void *out;
    uint64_t left_ld, right_ld, out_ld;
    unsigned rows, cols, depth;
    unsigned tile_rows, tile_cols; // the result in tiles
    int left_wide, right_wide, out_wide, out_bf16;
};

// Where tile `id` of the launch lies. Eight tile rows are walked together, column by column: blocks
// that run at the same time share both operands in the second-level cache.
struct rlhf__tile_at {
    unsigned row, col;
};
static __device__ __forceinline__ struct rlhf__tile_at rlhf__tile_of(const struct rlhf__tiles &p,
                                                                     unsigned id) {
    const unsigned band = 8 * p.tile_cols, first = id / band * 8, in = id % band;
    const unsigned tall = p.tile_rows - first < 8 ? p.tile_rows - first : 8;
    return {first + in % tall, in / tall};
}

// The sum of one element becomes an output.
static __device__ __forceinline__ void rlhf__tile_put(const struct rlhf__tiles &p, uint64_t at,
                                                      float v) {
    if (p.addend) v = p.addend[at] + v;
    if (p.out_bf16)
        rlhf__put((rlhf__bf16 *)p.out, at, v);
    else
        ((float *)p.out)[at] = v;
}

static __device__ __forceinline__ unsigned rlhf__pack2(float lo, float hi) {
    return (unsigned)rlhf__to_bf16(lo) | (unsigned)rlhf__to_bf16(hi) << 16;
}

// Eight sums, bias included, to out[at ..], all inside the result and 16-byte aligned.
static __device__ __forceinline__ void rlhf__tile_put8(const struct rlhf__tiles &p, uint64_t at,
                                                       float v[8]) {
    if (p.addend) {
        const float4 a = *(const float4 *)(p.addend + at), b = *(const float4 *)(p.addend + at + 4);
        v[0] = a.x + v[0], v[1] = a.y + v[1], v[2] = a.z + v[2], v[3] = a.w + v[3];
        v[4] = b.x + v[4], v[5] = b.y + v[5], v[6] = b.z + v[6], v[7] = b.w + v[7];
    }
    if (p.out_bf16) {
        uint4 w;
        w.x = rlhf__pack2(v[0], v[1]), w.y = rlhf__pack2(v[2], v[3]);
        w.z = rlhf__pack2(v[4], v[5]), w.w = rlhf__pack2(v[6], v[7]);
        *(uint4 *)((rlhf__bf16 *)p.out + at) = w;
        return;
    }
    float4 a, b;
    a.x = v[0], a.y = v[1], a.z = v[2], a.w = v[3];
    b.x = v[4], b.y = v[5], b.z = v[6], b.w = v[7];
    *(float4 *)((float *)p.out + at) = a;
    *(float4 *)((float *)p.out + at + 4) = b;
}

// A tile of sums [BM, BN] in shared memory, lines of BN + 8, goes out: 8 columns a thread, whole
// lines of memory at once. THREADS is a multiple of BN / 8.
template <int BM, int BN, int THREADS>
static __device__ __forceinline__ void
rlhf__tile_out(const struct rlhf__tiles &p, const float *sums, unsigned row0, unsigned col0) {
    const unsigned per = BN / 8, col = threadIdx.x % per * 8, c = col0 + col;
    if (c >= p.cols) return;
    const unsigned n = p.cols - c < 8 ? p.cols - c : 8;
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

// The files behind product.cu. tile as in product.h; p without tile_rows and tile_cols. [step]
rlhf_status rlhf__cuda_product_bf16(struct rlhf__cuda *cu, struct rlhf__tiles *p, int left_across,
                                    int right_across, int tile);
rlhf_status rlhf__cuda_product_f32(struct rlhf__cuda *cu, struct rlhf__tiles *p, int left_across,
                                   int right_across, int tile);
// At most RLHF__CUDA_DOT_COLS columns, both operands with depth contiguous: one warp a row.
#define RLHF__CUDA_DOT_COLS 16
rlhf_status rlhf__cuda_product_dot(struct rlhf__cuda *cu, const struct rlhf__tiles *p,
                                   int32_t in_dtype);

#endif
