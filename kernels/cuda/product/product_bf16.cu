// product_bf16.cu: the GEMM of bf16 operands on tensor cores: mma.m16n8k16 with f32 sums.
//
// A block computes one tile. Slices of 64 steps of depth stream through shared memory. Up to STAGES
// - 1 slices are loaded before the slice that is being multiplied is finished. A line consists of
// 16-byte chunks in a swizzled order, which keeps the eight rows of a fragment in different banks.
// Data past an operand's edge are zeros. Every sum is one chain of mma over ascending depth, so it
// does not depend on the tile.
#include "machine/ptx.h"
#include "product/product_tile.h"

#define SLICE 64 // depth of a stage

namespace {
// The shared memory of an operand's slice, in chunks of 8 elements. It is [LINES, 64] if depth is
// contiguous in the operand, and [64, LINES] if the operand is stored across.
template <int LINES, bool ACROSS> struct slice {
    enum {
        HIGH = ACROSS ? SLICE : LINES,         // number of rows of chunks
        CHUNKS = (ACROSS ? LINES : SLICE) / 8, // number of chunks in a row
        MASK = (CHUNKS < 8 ? CHUNKS : 8) - 1,
        SHARE = CHUNKS < 8 ? 8 / CHUNKS : 1, // number of rows in 128 bytes
        ELEMENTS = LINES * SLICE
    };
    static __device__ __forceinline__ unsigned at(unsigned row, unsigned chunk) {
        return row * CHUNKS * 8 + (chunk ^ (row / SHARE & MASK)) * 8;
    }
};
} // namespace

// Loads up to eight elements of an unaligned operand; the rest is zero.
static __device__ __forceinline__ uint4 take(const rlhf__bf16 *from, unsigned n) {
    unsigned v[8];
#pragma unroll
    for (unsigned i = 0; i < 8; i++)
        v[i] = i < n ? from[i] : 0;
    uint4 r;
    r.x = v[0] | v[1] << 16, r.y = v[2] | v[3] << 16;
    r.z = v[4] | v[5] << 16, r.w = v[6] | v[7] << 16;
    return r;
}

static __device__ __forceinline__ unsigned left_of(unsigned end, unsigned at) {
    return at >= end ? 0 : end - at < 8 ? end - at : 8;
}

// Starts to copy slice d0 .. d0 + 63 of the lines from line0 onward.
template <int LINES, bool ACROSS, int THREADS>
static __device__ __forceinline__ void fetch(rlhf__bf16 *to, const rlhf__bf16 *from, uint64_t ld,
                                             unsigned line0, unsigned lines, unsigned d0,
                                             unsigned depth, int wide) {
    typedef slice<LINES, ACROSS> S;
    static_assert(THREADS % S::CHUNKS == 0 || S::CHUNKS % THREADS == 0, "");
#pragma unroll
    for (unsigned i = 0; i < S::HIGH * S::CHUNKS / THREADS; i++) {
        const unsigned id = i * THREADS + threadIdx.x, row = id / S::CHUNKS, chunk = id % S::CHUNKS;
        const unsigned high = (ACROSS ? d0 : line0) + row,
                       along = (ACROSS ? line0 : d0) + chunk * 8;
        const unsigned n =
            high < (ACROSS ? depth : lines) ? left_of(ACROSS ? lines : depth, along) : 0;
        const rlhf__bf16 *p = n ? from + (uint64_t)high * ld + along : from;
        rlhf__bf16 *q = to + S::at(row, chunk);
        if (wide)
            rlhf__cp_async16(q, p, n * 2);
        else
            *(uint4 *)q = take(p, n);
    }
}

// Loads the fragments of a 16 x 16 piece of the left operand, and of 16 columns of the right
// operand.
template <int LINES, bool ACROSS>
static __device__ __forceinline__ void left_fragment(unsigned a[4], const rlhf__bf16 *s,
                                                     unsigned line, unsigned step) {
    const unsigned l = threadIdx.x % 32;
    if (ACROSS)
        rlhf__ldmatrix_x4_trans(
            a, s + slice<LINES, ACROSS>::at(step + l % 8 + l / 16 * 8, line / 8 + l / 8 % 2));
    else
        rlhf__ldmatrix_x4(a, s + slice<LINES, ACROSS>::at(line + l % 16, step / 8 + l / 16));
}
template <int LINES, bool ACROSS>
static __device__ __forceinline__ void right_fragment(unsigned b[4], const rlhf__bf16 *s,
                                                      unsigned line, unsigned step) {
    const unsigned l = threadIdx.x % 32;
    if (ACROSS)
        rlhf__ldmatrix_x4_trans(b, s + slice<LINES, ACROSS>::at(step + l % 16, line / 8 + l / 16));
    else
        rlhf__ldmatrix_x4(
            b, s + slice<LINES, ACROSS>::at(line + l % 8 + l / 16 * 8, step / 8 + l / 8 % 2));
}

// Computes a tile of BM x BN with WM x WN warps.
template <int BM, int BN, int WM, int WN, int STAGES, bool LEFT_ACROSS, bool RIGHT_ACROSS>
static __global__ void __launch_bounds__(32 * WM * WN, BM == 128 ? 2 : 4)
    product(struct rlhf__tiles p) {
    enum { THREADS = 32 * WM * WN, M = BM / WM, N = BN / WN, STAGE = (BM + BN) * SLICE };
    DYN_SHARED(memory);
    rlhf__tile_chunk<LEFT_ACROSS, RIGHT_ACROSS, rlhf__bf16>(p);
    rlhf__bf16 *stage = (rlhf__bf16 *)memory;
    const struct rlhf__tile_at tile = rlhf__tile_of(p, blockIdx.x);
    const unsigned row0 = tile.row * BM, col0 = tile.col * BN, warp = threadIdx.x / 32;
    const unsigned m0 = warp / WN * M, n0 = warp % WN * N, slices = (p.depth + SLICE - 1) / SLICE;
    const auto fetch_slice = [&](unsigned i) {
        rlhf__bf16 *to = stage + i % STAGES * STAGE;
        if (i < slices) {
            fetch<BM, LEFT_ACROSS, THREADS>(to, (const rlhf__bf16 *)p.left, p.left_ld, row0, p.rows,
                                            i * SLICE, p.depth, p.left_wide);
            fetch<BN, RIGHT_ACROSS, THREADS>(to + BM * SLICE, (const rlhf__bf16 *)p.right,
                                             p.right_ld, col0, p.cols, i * SLICE, p.depth,
                                             p.right_wide);
        }
        rlhf__cp_async_commit();
    };
    float acc[M / 16][N / 8][4] = {};
    for (unsigned i = 0; i < STAGES - 1; i++)
        fetch_slice(i);
    for (unsigned i = 0; i < slices; i++) {
        rlhf__cp_async_wait<STAGES - 2>();
        __syncthreads(); // slice i is visible to all, and the stage to fetch into is free
        fetch_slice(i + STAGES - 1);
        const rlhf__bf16 *left = stage + i % STAGES * STAGE, *right = left + BM * SLICE;
        const unsigned deep = p.depth - i * SLICE;
#pragma unroll
        for (unsigned d = 0; d < SLICE; d += 16) {
            if (d >= deep) break; // skips products that are 0
            unsigned a[M / 16][4], b[N / 16][4];
#pragma unroll
            for (int m = 0; m < M / 16; m++)
                left_fragment<BM, LEFT_ACROSS>(a[m], left, m0 + m * 16, d);
#pragma unroll
            for (int n = 0; n < N / 16; n++)
                right_fragment<BN, RIGHT_ACROSS>(b[n], right, n0 + n * 16, d);
#pragma unroll
            for (int m = 0; m < M / 16; m++)
#pragma unroll
                for (int n = 0; n < N / 8; n++)
                    rlhf__mma_bf16(acc[m][n], a[m], b[n / 2] + n % 2 * 2);
        }
    }
    __syncthreads(); // the tile of sums reuses the stages, after all copies
    float *sums = (float *)memory;
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4 * 2;
#pragma unroll
    for (int m = 0; m < M / 16; m++)
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float2 v;
                v.x = acc[m][n][2 * h], v.y = acc[m][n][2 * h + 1];
                *(float2 *)(sums + (m0 + m * 16 + h * 8 + g) * (BN + 8) + n0 + n * 8 + t) = v;
            }
    __syncthreads();
    rlhf__tile_out<BM, BN, THREADS>(p, sums, row0, col0);
}

template <int BM, int BN, int WM, int WN, int STAGES, bool LEFT_ACROSS, bool RIGHT_ACROSS>
static rlhf_status run(struct rlhf__cuda *cu, const struct rlhf__tiles *p) {
    enum { BYTES = STAGES * (BM + BN) * SLICE * 2 };
    static_assert(BYTES >= BM * (BN + 8) * 4, "the sums of a tile fit where its stages were");
    const auto product_tile = product<BM, BN, WM, WN, STAGES, LEFT_ACROSS, RIGHT_ACROSS>;
    if (BYTES > 48 * 1024)
        RLHF_TRY(rlhf__cuda_check(cu, "product", ALLOW_SHARED(product_tile, BYTES)));
    RUN(cu, product_tile, rlhf__tile_grid(p), dim3(32 * WM * WN), BYTES, *p);
    return RLHF_OK;
}

template <bool LEFT_ACROSS, bool RIGHT_ACROSS>
static rlhf_status run_tile(struct rlhf__cuda *cu, const struct rlhf__tiles *p, int tile) {
    if (tile == 0) return run<128, 128, 2, 4, 3, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
    if (tile == 1) return run<64, 64, 2, 2, 3, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
    return run<16, 64, 1, 4, 4, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
}

rlhf_status rlhf__cuda_product_bf16(struct rlhf__cuda *cu, struct rlhf__tiles *p, int left_across,
                                    int right_across, int tile) {
    if (!left_across && !right_across) return run_tile<false, false>(cu, p, tile);
    if (!left_across) return run_tile<false, true>(cu, p, tile);
    if (!right_across) return run_tile<true, false>(cu, p, tile);
    return run_tile<true, true>(cu, p, tile);
}
