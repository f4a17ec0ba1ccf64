// matrix.h: mma and ldmatrix. The last lane of a warp to arrive does the work for all.
#ifndef RLHF_TESTS_CUDA_EMU_MATRIX_H
#define RLHF_TESTS_CUDA_EMU_MATRIX_H

#include "barrier.h"
#include "shared.h"

#include <immintrin.h>

namespace emu {

inline float widen(unsigned b) {
    const unsigned u = b << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

struct mma_operands {
    unsigned a[4], b[2];
};

// Multiplies the fragments in slot[p] and stores the product in out[p], four floats per lane. Sums
// over k in ascending order, in f32.
EMU_UNSEEN inline void mma_product(warp &w, unsigned p) {
    float a[16][16], b[16][8], d[16][8] = {};
    for (int l = 0; l < LANES; l++) {
        mma_operands o;
        memcpy(&o, w.slot[p][l], sizeof o);
        for (int i = 0; i < 4; i++) {
            const int r = l / 4 + (i & 1) * 8, k = l % 4 * 2 + (i >> 1) * 8;
            a[r][k] = widen(o.a[i]);
            a[r][k + 1] = widen(o.a[i] >> 16);
        }
        for (int i = 0; i < 2; i++) {
            const int k = l % 4 * 2 + i * 8;
            b[k][l / 4] = widen(o.b[i]);
            b[k + 1][l / 4] = widen(o.b[i] >> 16);
        }
    }
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < 16; k++)
            for (int c = 0; c < 8; c++)
                d[r][c] += a[r][k] * b[k][c];
    for (int l = 0; l < LANES; l++) {
        const int g = l / 4, t = l % 4 * 2;
        const float mine[4] = {d[g][t], d[g][t + 1], d[g + 8][t], d[g + 8][t + 1]};
        memcpy(w.out[p][l], mine, sizeof mine);
    }
}

// Lane 8 i + r has passed the address of row r of matrix i. In register i, lane l receives elements
// 2 (l % 4) and 2 (l % 4) + 1 of row l / 4. If `trans` is set, it receives these elements of column
// l / 4. The race detector sees this function, because these are the warp's reads of shared memory.
__attribute__((noinline)) inline void ldmatrix_read(warp &w, unsigned p, int n, bool trans) {
    uint16_t m[4][8][8];
    for (int i = 0; i < n; i++)
        for (int r = 0; r < 8; r++) {
            const uint16_t *row = (const uint16_t *)w.slot[p][8 * i + r][0];
            for (int c = 0; c < 8; c++)
                m[i][r][c] = row[c];
        }
    for (int l = 0; l < LANES; l++) {
        unsigned out[4] = {};
        for (int i = 0; i < n; i++) {
            const int g = l / 4, t = l % 4 * 2;
            const unsigned lo = trans ? m[i][t][g] : m[i][g][t];
            const unsigned hi = trans ? m[i][t + 1][g] : m[i][g][t + 1];
            out[i] = lo | hi << 16;
        }
        memcpy(w.out[p][l], out, sizeof out);
    }
}

} // namespace emu

// d[4] += A[16x16] B[16x8], with bf16 inputs and f32 outputs. The fragments are those of PTX
// mma.m16n8k16.
inline void emu_mma_bf16(float d[4], const unsigned a[4], const unsigned b[2],
                         int line = __builtin_LINE()) {
    const emu::mma_operands mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    const unsigned next = emu::self->phase ^ 1;
    const unsigned p =
        emu::put(~0u, mine, line, [next](emu::warp &w) { emu::mma_product(w, next); });
    float sum[4];
    memcpy(sum, emu::warps[emu::self->linear / 32].out[p][emu::self->lane], sizeof sum);
    for (int i = 0; i < 4; i++)
        d[i] += sum[i];
}

// Loads n matrices of 8x8 16-bit numbers from shared memory.
namespace emu {
inline void ldmatrix(unsigned *out, int n, const void *row, bool trans, int line) {
    if ((int)self->lane < 8 * n) {
        if ((uintptr_t)row % 16) die("ldmatrix of a row that is not aligned to 16 bytes", line);
        if (!is_shared(row, 16)) die("ldmatrix of what is not the block's shared memory", line);
    }
    const unsigned next = self->phase ^ 1;
    const uint64_t at = (uintptr_t)row;
    const unsigned p = put(~0u, at, line, [=](warp &w) { ldmatrix_read(w, next, n, trans); });
    memcpy(out, warps[self->linear / LANES].out[p][self->lane], (size_t)n * sizeof *out);
}
} // namespace emu

inline void emu_ldmatrix_x4(unsigned r[4], const void *row, int trans,
                            int line = __builtin_LINE()) {
    emu::ldmatrix(r, 4, row, trans != 0, line);
}
inline void emu_ldmatrix_x2(unsigned r[2], const void *row, int trans,
                            int line = __builtin_LINE()) {
    emu::ldmatrix(r, 2, row, trans != 0, line);
}

// Does sum[M][N] += a[M] b[N] D times. Uses the machine's FMA if it has one, which is faster and
// gives the same bits.
namespace emu {
template <int D, int M, int N>
__attribute__((target("avx2,fma"), noinline)) inline void fma_outer_fast(float *sum, const float *a,
                                                                         const float *b) {
    static_assert(N % 8 == 0, "whole vectors");
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n += 8) {
            __m256 v = _mm256_loadu_ps(sum + m * N + n);
            for (int d = 0; d < D; d++)
                v = _mm256_fmadd_ps(_mm256_set1_ps(a[d * M + m]), _mm256_loadu_ps(b + d * N + n),
                                    v);
            _mm256_storeu_ps(sum + m * N + n, v);
        }
}
} // namespace emu
template <int D, int M, int N>
inline void emu_fma_outer(float *sum, const float *a, const float *b) {
    static const bool fast = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (fast) {
        emu::fma_outer_fast<D, M, N>(sum, a, b);
        return;
    }
    for (int d = 0; d < D; d++)
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++)
                sum[m * N + n] = fmaf(a[d * M + m], b[d * N + n], sum[m * N + n]);
}

#endif
