// product_f32.cu: the product of f32 operands: every sum is one chain of fmaf over ascending depth,
// never of reduced precision.
//
// Slices of 16 steps of depth stream through shared memory as [step, line], whichever way the
// operand lies, in two stages.
#include "product_tile.h"
#include "ptx.h"

#define SLICE 16

// Begins the copy of slice d0 .. d0 + 15 of lines line0 ... Neighbours in a warp read neighbours.
template <int LINES, bool ACROSS, int THREADS>
static __device__ __forceinline__ void fetch(float *to, const float *from, uint64_t ld,
                                             unsigned line0, unsigned lines, unsigned d0,
                                             unsigned depth) {
#pragma unroll
    for (unsigned i = 0; i < LINES * SLICE / THREADS; i++) {
        const unsigned id = i * THREADS + threadIdx.x;
        const unsigned l = ACROSS ? id % LINES : id / SLICE, d = ACROSS ? id / LINES : id % SLICE;
        const bool in = line0 + l < lines && d0 + d < depth;
        const uint64_t at =
            ACROSS ? (uint64_t)(d0 + d) * ld + line0 + l : (uint64_t)(line0 + l) * ld + d0 + d;
        rlhf__cp_async4(to + d * (LINES + 4) + l, in ? from + at : from, in ? 4 : 0);
    }
}

// N floats of a line in groups of four, GAP apart: neighbours in a warp read neighbours.
template <int N, int GAP>
static __device__ __forceinline__ void read(float v[N], const float *from) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const float4 f = *(const float4 *)(from + i / 4 * GAP);
        v[i] = f.x, v[i + 1] = f.y, v[i + 2] = f.z, v[i + 3] = f.w;
    }
}

// A tile BM x BN; a thread makes TM x TN sums in groups of 4 x 4.
template <int BM, int BN, int TM, int TN, bool LEFT_ACROSS, bool RIGHT_ACROSS>
static __global__ void __launch_bounds__(BM / TM * BN / TN) product(struct rlhf__tiles p) {
    enum { TX = BN / TN, TY = BM / TM, THREADS = TX * TY };
    enum { LEFT = SLICE * (BM + 4), STAGE = LEFT + SLICE * (BN + 4) };
    DYN_SHARED(memory);
    float *stage = (float *)memory;
    const struct rlhf__tile_at tile = rlhf__tile_of(p, blockIdx.x);
    const unsigned row0 = tile.row * BM, col0 = tile.col * BN;
    const unsigned x = threadIdx.x % TX * 4, y = threadIdx.x / TX * 4;
    const unsigned slices = (p.depth + SLICE - 1) / SLICE;
    const auto fetch_slice = [&](unsigned i) {
        float *to = stage + i % 2 * STAGE;
        if (i < slices) {
            fetch<BM, LEFT_ACROSS, THREADS>(to, (const float *)p.left, p.left_ld, row0, p.rows,
                                            i * SLICE, p.depth);
            fetch<BN, RIGHT_ACROSS, THREADS>(to + LEFT, (const float *)p.right, p.right_ld, col0,
                                             p.cols, i * SLICE, p.depth);
        }
        rlhf__cp_async_commit();
    };
    float acc[TM][TN] = {};
    fetch_slice(0);
    for (unsigned i = 0; i < slices; i++) {
        rlhf__cp_async_wait<0>();
        __syncthreads(); // slice i is there for all, and nobody reads the other stage
        fetch_slice(i + 1);
        const float *left = stage + i % 2 * STAGE, *right = left + LEFT;
#pragma unroll 4
        for (unsigned d = 0; d < SLICE; d++) {
            float a[TM], b[TN];
            read<TM, 4 * TY>(a, left + d * (BM + 4) + y);
            read<TN, 4 * TX>(b, right + d * (BN + 4) + x);
            rlhf__fma_outer<TM, TN>(acc, a, b);
        }
    }
    rlhf__cp_async_wait<0>();
    __syncthreads(); // the stages become the tile of sums
#pragma unroll
    for (int m = 0; m < TM; m++)
#pragma unroll
        for (int n = 0; n < TN; n += 4) {
            float4 v;
            v.x = acc[m][n], v.y = acc[m][n + 1], v.z = acc[m][n + 2], v.w = acc[m][n + 3];
            *(float4 *)(stage + (y + m / 4 * 4 * TY + m % 4) * (BN + 8) + x + n / 4 * 4 * TX) = v;
        }
    __syncthreads();
    rlhf__tile_out<BM, BN, THREADS>(p, stage, row0, col0);
}

template <int BM, int BN, int TM, int TN, bool LEFT_ACROSS, bool RIGHT_ACROSS>
static rlhf_status run(struct rlhf__cuda *cu, const struct rlhf__tiles *p) {
    enum {
        STAGES = 2 * SLICE * (BM + BN + 8) * 4,
        SUMS = BM * (BN + 8) * 4,
        BYTES = STAGES > SUMS ? STAGES : SUMS
    };
    const auto product_tile = product<BM, BN, TM, TN, LEFT_ACROSS, RIGHT_ACROSS>;
    RLHF_TRY(rlhf__cuda_check(cu, "product", ALLOW_SHARED(product_tile, BYTES)));
    RUN(cu, product_tile, dim3(p->tile_rows * p->tile_cols), dim3(BM / TM * BN / TN), BYTES, *p);
    return RLHF_OK;
}

template <bool LEFT_ACROSS, bool RIGHT_ACROSS>
static rlhf_status run_tile(struct rlhf__cuda *cu, const struct rlhf__tiles *p, int tile) {
    if (tile == 0) return run<128, 128, 8, 8, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
    if (tile == 1) return run<64, 64, 8, 8, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
    return run<16, 64, 4, 8, LEFT_ACROSS, RIGHT_ACROSS>(cu, p);
}

rlhf_status rlhf__cuda_product_f32(struct rlhf__cuda *cu, struct rlhf__tiles *p, int left_across,
                                   int right_across, int tile) {
    if (!left_across && !right_across) return run_tile<false, false>(cu, p, tile);
    if (!left_across) return run_tile<false, true>(cu, p, tile);
    if (!right_across) return run_tile<true, false>(cu, p, tile);
    return run_tile<true, true>(cu, p, tile);
}
