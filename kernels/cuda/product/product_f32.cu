// product_f32.cu: the GEMM of f32 operands. Every sum is one chain of fmaf over ascending depth,
// never in reduced precision.
//
// Slices of 16 steps of depth stream through shared memory in two stages, in the layout of the
// operand. If depth is contiguous, a slice is [line, 16] with a pitch of 20. If the operand is
// stored across, a slice is [16, line]. In both cases neighboring threads of a warp read
// neighboring banks.
#include "machine/ptx.h"
#include "product/product_tile.h"

#define SLICE 16

namespace {
template <int LINES, bool ACROSS> struct slice {
    enum {
        HIGH = ACROSS ? SLICE : LINES,         // number of rows of chunks
        CHUNKS = (ACROSS ? LINES : SLICE) / 4, // chunks of 4 floats in a row
        LD = CHUNKS * 4 + 4,
        FLOATS = HIGH * LD
    };
};
} // namespace

// Starts to copy slice d0 .. d0 + 15 of the lines from line0 onward.
template <int LINES, bool ACROSS, int THREADS>
static __device__ __forceinline__ void fetch(float *to, const float *from, uint64_t ld,
                                             unsigned line0, unsigned lines, unsigned d0,
                                             unsigned depth, int wide) {
    typedef slice<LINES, ACROSS> S;
    static_assert(S::HIGH * S::CHUNKS % THREADS == 0, "");
#pragma unroll
    for (unsigned i = 0; i < S::HIGH * S::CHUNKS / THREADS; i++) {
        const unsigned id = i * THREADS + threadIdx.x, row = id / S::CHUNKS,
                       col = id % S::CHUNKS * 4;
        const unsigned high = (ACROSS ? d0 : line0) + row, along = (ACROSS ? line0 : d0) + col;
        const unsigned end = ACROSS ? lines : depth;
        const unsigned n = high >= (ACROSS ? depth : lines) || along >= end ? 0
                           : end - along < 4                                ? end - along
                                                                            : 4;
        const float *p = n ? from + (uint64_t)high * ld + along : from;
        float *q = to + row * S::LD + col;
        if (wide)
            rlhf__cp_async16(q, p, n * 4);
        else
#pragma unroll
            for (unsigned j = 0; j < 4; j++)
                rlhf__cp_async4(q + j, j < n ? p + j : from, j < n ? 4 : 0); // a valid address
    }
}

// The i-th line of the tile that thread t of T processes.
template <bool ACROSS, int T>
static __device__ __forceinline__ unsigned line_of(unsigned t, int i) {
    return ACROSS ? t * 4 + i / 4 * 4 * T + i % 4 : t + i * T;
}

// Loads v[step][i]: four steps of N lines.
template <int LINES, bool ACROSS, int N, int T>
static __device__ __forceinline__ void read(float (&v)[4][N], const float *s, unsigned t,
                                            unsigned step) {
    enum { LD = slice<LINES, ACROSS>::LD };
    if (ACROSS) {
#pragma unroll
        for (int d = 0; d < 4; d++)
#pragma unroll
            for (int i = 0; i < N; i += 4) {
                const float4 f = *(const float4 *)(s + (step + d) * LD + line_of<ACROSS, T>(t, i));
                v[d][i] = f.x, v[d][i + 1] = f.y, v[d][i + 2] = f.z, v[d][i + 3] = f.w;
            }
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float4 f = *(const float4 *)(s + line_of<ACROSS, T>(t, i) * LD + step);
            v[0][i] = f.x, v[1][i] = f.y, v[2][i] = f.z, v[3][i] = f.w;
        }
    }
}

// Computes a tile of BM x BN. Each thread computes TM x TN sums.
template <int BM, int BN, int TM, int TN, bool LEFT_ACROSS, bool RIGHT_ACROSS>
static __global__ void __launch_bounds__(BM / TM * BN / TN) product(struct rlhf__tiles p) {
    enum { TX = BN / TN, TY = BM / TM, THREADS = TX * TY };
    enum { LEFT = slice<BM, LEFT_ACROSS>::FLOATS, STAGE = LEFT + slice<BN, RIGHT_ACROSS>::FLOATS };
    DYN_SHARED(memory);
    rlhf__tile_chunk<LEFT_ACROSS, RIGHT_ACROSS, float>(p);
    float *stage = (float *)memory;
    const struct rlhf__tile_at tile = rlhf__tile_of(p, blockIdx.x);
    const unsigned row0 = tile.row * BM, col0 = tile.col * BN;
    const unsigned x = threadIdx.x % TX, y = threadIdx.x / TX;
    const unsigned slices = (p.depth + SLICE - 1) / SLICE;
    const auto fetch_slice = [&](unsigned i) {
        float *to = stage + i % 2 * STAGE;
        if (i < slices) {
            fetch<BM, LEFT_ACROSS, THREADS>(to, (const float *)p.left, p.left_ld, row0, p.rows,
                                            i * SLICE, p.depth, p.left_wide);
            fetch<BN, RIGHT_ACROSS, THREADS>(to + LEFT, (const float *)p.right, p.right_ld, col0,
                                             p.cols, i * SLICE, p.depth, p.right_wide);
        }
        rlhf__cp_async_commit();
    };
    float acc[TM][TN] = {};
    fetch_slice(0);
    for (unsigned i = 0; i < slices; i++) {
        rlhf__cp_async_wait<0>();
        __syncthreads(); // slice i is visible to all, and the other stage is free
        fetch_slice(i + 1);
        const float *left = stage + i % 2 * STAGE, *right = left + LEFT;
#pragma unroll 1
        for (unsigned step = 0; step < SLICE; step += 4) {
            float a[4][TM], b[4][TN];
            read<BM, LEFT_ACROSS, TM, TY>(a, left, y, step);
            read<BN, RIGHT_ACROSS, TN, TX>(b, right, x, step);
            rlhf__fma_outer(acc, a, b);
        }
    }
    __syncthreads(); // the tile of sums reuses the stages, after all copies
#pragma unroll
    for (int m = 0; m < TM; m++)
#pragma unroll
        for (int n = 0; n < TN; n++)
            stage[line_of<LEFT_ACROSS, TY>(y, m) * (BN + 8) + line_of<RIGHT_ACROSS, TX>(x, n)] =
                acc[m][n];
    __syncthreads();
    rlhf__tile_out<BM, BN, THREADS>(p, stage, row0, col0);
}

template <int BM, int BN, int TM, int TN, bool LEFT_ACROSS, bool RIGHT_ACROSS>
static rlhf_status run(struct rlhf__cuda *cu, const struct rlhf__tiles *p) {
    enum {
        STAGES = 2 * (slice<BM, LEFT_ACROSS>::FLOATS + slice<BN, RIGHT_ACROSS>::FLOATS) * 4,
        SUMS = BM * (BN + 8) * 4,
        BYTES = STAGES > SUMS ? STAGES : SUMS
    };
    const auto product_tile = product<BM, BN, TM, TN, LEFT_ACROSS, RIGHT_ACROSS>;
    if (BYTES > 48 * 1024)
        RLHF_TRY(rlhf__cuda_check(cu, "product", ALLOW_SHARED(product_tile, BYTES)));
    RUN(cu, product_tile, rlhf__tile_grid(p), dim3(BM / TM * BN / TN), BYTES, *p);
    return RLHF_OK;
}

template <bool LEFT_ACROSS, bool RIGHT_ACROSS>
static rlhf_status run_tile(struct rlhf__cuda *cu, const struct rlhf__tiles *p, int tile) {
    if (tile == 0) return run<128, 128, 8, 8, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
    if (tile == 1) return run<64, 64, 4, 8, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
    return run<16, 64, 4, 8, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
}

rlhf_status rlhf__cuda_product_f32(struct rlhf__cuda *cu, struct rlhf__tiles *p, int left_across,
                                   int right_across, int tile) {
    if (!left_across && !right_across) return run_tile<false, false>(cu, p, tile);
    if (!left_across) return run_tile<false, true>(cu, p, tile);
    if (!right_across) return run_tile<true, false>(cu, p, tile);
    return run_tile<true, true>(cu, p, tile);
}
