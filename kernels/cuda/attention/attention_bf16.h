// attention_bf16.h: tiles in shared memory for the bf16 attention kernels, and products of these
// tiles with the 16 rows of a warp. Rows of a tile are HD + 8 elements apart, which avoids bank
// conflicts of ldmatrix.
#ifndef RLHF_CUDA_ATTENTION_BF16_H
#define RLHF_CUDA_ATTENTION_BF16_H

#include "attention/attention.h"
#include "machine/ptx.h"

static __device__ __forceinline__ unsigned rlhf__attn_pack(float lo, float hi) {
    return (unsigned)rlhf__to_bf16(lo) | (unsigned)rlhf__to_bf16(hi) << 16;
}

// Start to copy keys `first` .. `first` + ROWS - 1 of row r into `to`. To copy queries, the caller
// passes an r whose k0 is the row's first query. Rows below `begin` and rows from `end` onward are
// not read and become zeros, and so do columns from head_dim onward. x points to the first column
// of the head. With pack > 1, row j of the tile is head j % pack of token j / pack.
template <int HD, int ROWS, int THREADS>
static __device__ __forceinline__ void
rlhf__attn_load(rlhf__bf16 *to, const rlhf__bf16 *x, int64_t stride, const struct rlhf__cuda_row &r,
                int first, int begin, int end, int head_dim, int wide, int pack = 1) {
    enum { CHUNKS = HD / 8 };
#pragma unroll
    for (int i = (int)threadIdx.x; i < ROWS * CHUNKS; i += THREADS) {
        const int j = first + i / CHUNKS, col = i % CHUNKS * 8;
        const int n = j >= begin && j < end && col < head_dim ? head_dim - col : 0;
        const rlhf__bf16 *from =
            n ? x + rlhf__cuda_key(r, j / pack) * stride + j % pack * head_dim + col : x;
        rlhf__bf16 *at = to + i / CHUNKS * (HD + 8) + col;
        if (wide)
            rlhf__cp_async16(at, from, n ? 16u : 0u);
        else
            for (int e = 0; e < 8; e++)
                at[e] = e < n ? from[e] : (rlhf__bf16)0;
    }
}

// Copy OUT columns of the 16 rows of `tile` to rows `first` .. `first` + 15 of x, with `pack` as in
// rlhf__attn_load. Only rows below `end` and columns below head_dim are copied.
template <int HD, int OUT = HD>
static __device__ __forceinline__ void rlhf__attn_store(rlhf__bf16 *x, int64_t stride,
                                                        const rlhf__bf16 *tile, int first, int end,
                                                        int head_dim, int wide, int pack = 1) {
    enum { CHUNKS = OUT / 8 };
#pragma unroll
    for (int i = (int)threadIdx.x % 32; i < 16 * CHUNKS; i += 32) {
        const int r = first + i / CHUNKS, col = i % CHUNKS * 8;
        const rlhf__bf16 *from = tile + i / CHUNKS * (HD + 8) + col;
        if (r >= end || col >= head_dim) continue;
        rlhf__bf16 *to = x + r / pack * stride + r % pack * head_dim + col;
        if (wide)
            *(uint4 *)to = *(const uint4 *)from;
        else
            for (int e = 0; e < 8 && col + e < head_dim; e++)
                to[e] = from[e];
    }
}

// Stores the accumulators d[16 x OUT] into 16 rows of a tile. Each thread multiplies its numbers of
// rows 0 .. 7 by `lo`, and those of rows 8 .. 15 by `hi`. -0 becomes +0.
template <int HD, int OUT = HD>
static __device__ __forceinline__ void rlhf__attn_put(rlhf__bf16 *tile, const float (*d)[4],
                                                      float lo, float hi) {
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int n = 0; n < OUT / 8; n++) {
        unsigned *at = (unsigned *)(tile + g * (HD + 8) + n * 8 + 2 * t);
        at[0] = rlhf__attn_pack(fmaf(d[n][0], lo, 0.0f), fmaf(d[n][1], lo, 0.0f));
        at[4 * (HD + 8)] = rlhf__attn_pack(fmaf(d[n][2], hi, 0.0f), fmaf(d[n][3], hi, 0.0f));
    }
}

// Loads 16 rows of a tile as the left operand a[HD / 16].
template <int HD>
static __device__ __forceinline__ void rlhf__attn_left(unsigned (*a)[4], const rlhf__bf16 *tile) {
    const int lane = (int)threadIdx.x % 32;
    const rlhf__bf16 *at = tile + lane % 16 * (HD + 8) + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < HD / 16; k++)
        rlhf__ldmatrix_x4(a[k], at + k * 16);
}

// s[16 x COLS] = the left operand times the transpose of COLS rows of a tile.
template <int HD, int COLS>
static __device__ __forceinline__ void rlhf__attn_by_rows(float (*s)[4], const unsigned (*a)[4],
                                                          const rlhf__bf16 *tile) {
    const int lane = (int)threadIdx.x % 32;
    const rlhf__bf16 *at = tile + (lane / 16 * 8 + lane % 8) * (HD + 8) + lane / 8 % 2 * 8;
#pragma unroll
    for (int n = 0; n < COLS / 8; n++)
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
    for (int k = 0; k < HD / 16; k++)
#pragma unroll
        for (int n = 0; n < COLS / 16; n++) {
            unsigned b[4];
            rlhf__ldmatrix_x4(b, at + n * 16 * (HD + 8) + k * 16);
            rlhf__mma_bf16(s[2 * n], a[k], b);
            rlhf__mma_bf16(s[2 * n + 1], a[k], b + 2);
        }
}

// The same with a left operand that is read from the 16 rows of a tile at `own`, step by step. For
// wide heads, the whole operand would take too many registers.
template <int HD, int COLS>
static __device__ __forceinline__ void rlhf__attn_rows_by_rows(float (*s)[4], const rlhf__bf16 *own,
                                                               const rlhf__bf16 *tile) {
    const int lane = (int)threadIdx.x % 32;
    const rlhf__bf16 *x = own + lane % 16 * (HD + 8) + lane / 16 * 8;
    const rlhf__bf16 *y = tile + (lane / 16 * 8 + lane % 8) * (HD + 8) + lane / 8 % 2 * 8;
#pragma unroll
    for (int n = 0; n < COLS / 8; n++)
        s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
    for (int k = 0; k < HD / 16; k++) {
        unsigned a[4], b[4];
        rlhf__ldmatrix_x4(a, x + k * 16);
#pragma unroll
        for (int n = 0; n < COLS / 16; n++) {
            rlhf__ldmatrix_x4(b, y + n * 16 * (HD + 8) + k * 16);
            rlhf__mma_bf16(s[2 * n], a, b);
            rlhf__mma_bf16(s[2 * n + 1], a, b + 2);
        }
    }
}

// The rounding errors of two numbers that were rounded to bf16. The errors are bf16 numbers too.
static __device__ __forceinline__ unsigned rlhf__attn_rest(float lo, float hi, unsigned packed) {
    return rlhf__attn_pack(lo - rlhf__from_bf16((rlhf__bf16)packed),
                           hi - rlhf__from_bf16((rlhf__bf16)(packed >> 16)));
}

// d[16 x OUT] += s[16 x COLS] times the first OUT columns of COLS rows of a tile. s is rounded to
// bf16 or, with PARTS = 2, to the sum of two bf16 numbers.
template <int HD, int COLS, int PARTS = 1, int OUT = HD>
static __device__ __forceinline__ void rlhf__attn_by_cols(float (*d)[4], const float (*s)[4],
                                                          const rlhf__bf16 *tile) {
    const int lane = (int)threadIdx.x % 32;
    const rlhf__bf16 *at = tile + lane % 16 * (HD + 8) + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < COLS / 16; k++) {
        const float *x = s[2 * k], *y = s[2 * k + 1];
        const unsigned a[4] = {rlhf__attn_pack(x[0], x[1]), rlhf__attn_pack(x[2], x[3]),
                               rlhf__attn_pack(y[0], y[1]), rlhf__attn_pack(y[2], y[3])};
        unsigned rest[4] = {0, 0, 0, 0};
        if (PARTS == 2) {
            rest[0] = rlhf__attn_rest(x[0], x[1], a[0]);
            rest[1] = rlhf__attn_rest(x[2], x[3], a[1]);
            rest[2] = rlhf__attn_rest(y[0], y[1], a[2]);
            rest[3] = rlhf__attn_rest(y[2], y[3], a[3]);
        }
#pragma unroll
        for (int n = 0; n < OUT / 16; n++) {
            unsigned b[4];
            rlhf__ldmatrix_x4_trans(b, at + k * 16 * (HD + 8) + n * 16);
            rlhf__mma_bf16(d[2 * n], a, b);
            rlhf__mma_bf16(d[2 * n + 1], a, b + 2);
            if (PARTS == 2) {
                rlhf__mma_bf16(d[2 * n], rest, b);
                rlhf__mma_bf16(d[2 * n + 1], rest, b + 2);
            }
        }
    }
}

#endif
