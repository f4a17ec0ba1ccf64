// fake_lt_sum.cpp: the sums of the fake cuBLASLt.
#include "fake_lt.h"
#include <string.h>
#include <vector>

namespace {

enum { I = 16, J = 4 }; // outputs of one step: rows of D, columns of D

float widen(uint16_t b) {
    const uint32_t u = (uint32_t)b << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

uint16_t narrow(float f) { // rounds to nearest even
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 64);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float cut_tf32(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    u &= ~0x1fffu;
    memcpy(&f, &u, 4);
    return f;
}

float get(const void *p, int bf16, int64_t i) {
    return bf16 ? widen(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

// Packs columns first .. first + I - 1 of the operand's outer index as [k][I]. Columns past n are
// zero.
void pack(float *to, const fake_lt_matrix &x, int k_first, int64_t first, int64_t n, int64_t k,
          int tf32) {
    // k_first: consecutive k are contiguous
    for (int64_t l = 0; l < k; l++)
        for (int64_t i = 0; i < I; i++) {
            float v = 0;
            if (first + i < n)
                v = get(x.p, x.bf16, k_first ? (first + i) * x.ld + l : l * x.ld + first + i);
            to[l * I + i] = tf32 ? cut_tf32(v) : v;
        }
}

typedef float lanes __attribute__((vector_size(4 * I)));

// acc[j][i] = sum over l in [from, to) of a[l][i] b[j][l].
inline __attribute__((always_inline)) void
chain_body(float acc[J][I], const float *a, const float *const b[J], int64_t from, int64_t to) {
    lanes s[J] = {};
    for (int64_t l = from; l < to; l++) {
        lanes v;
        memcpy(&v, a + l * I, sizeof v);
        for (int j = 0; j < J; j++)
            s[j] += v * b[j][l];
    }
    memcpy(acc, s, sizeof s);
}
void chain_plain(float acc[J][I], const float *a, const float *const b[J], int64_t f, int64_t t) {
    chain_body(acc, a, b, f, t);
}
#ifdef __x86_64__ // the same operations, so the same bits
__attribute__((target("avx2"))) void chain_avx2(float acc[J][I], const float *a,
                                                const float *const b[J], int64_t f, int64_t t) {
    chain_body(acc, a, b, f, t);
}
#endif

int pieces(const fake_lt_work *w) {
    if (w->sum == FAKE_LT_SPLIT) return 4;
    if (w->sum == FAKE_LT_HALVES) return 2;
    if (w->sum == FAKE_LT_GIANT) return w->n > 2000 ? 2 : 1;
    if (w->sum == FAKE_LT_BY_COLS) return w->n <= 64 ? 1 : w->n <= 256 ? 2 : 3;
    if (w->sum == FAKE_LT_BY_TURN) return 2 + (int)(w->turn % 3);
    return 1;
}

void store(const fake_lt_work *w, int64_t i, int64_t j, float acc) {
    float v = w->alpha * acc;
    if (w->beta != 0) v += w->beta * get(w->c, w->d_bf16, j * w->ldc + i);
    if (w->bias) v += get(w->bias, w->d_bf16, i);
    if (w->d_bf16)
        ((uint16_t *)w->d)[j * w->ldd + i] = narrow(v);
    else
        ((float *)w->d)[j * w->ldd + i] = v;
}

} // namespace

void fake_lt_compute(const fake_lt_work *w) {
    auto *chain = chain_plain;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) chain = chain_avx2;
#endif
    const int tf32 = w->sum == FAKE_LT_TF32, n_pieces = pieces(w);
    std::vector<float> b((size_t)(w->n * w->k)), a((size_t)(w->k * I));
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t l = 0; l < w->k; l++) {
            const float v = get(w->b.p, w->b.bf16, w->b.trans ? l * w->b.ld + j : j * w->b.ld + l);
            b[(size_t)(j * w->k + l)] = tf32 ? cut_tf32(v) : v;
        }
    for (int64_t i0 = 0; i0 < w->m; i0 += I) {
        pack(a.data(), w->a, w->a.trans, i0, w->m, w->k, tf32);
        for (int64_t j0 = 0; j0 < w->n; j0 += J) {
            const float *column[J];
            float sum[J][I] = {}, part[J][I];
            for (int j = 0; j < J; j++)
                column[j] = &b[(size_t)((j0 + j < w->n ? j0 + j : j0) * w->k)];
            for (int p = 0; p < n_pieces; p++) {
                chain(part, a.data(), column, w->k * p / n_pieces, w->k * (p + 1) / n_pieces);
                for (int j = 0; j < J; j++)
                    for (int i = 0; i < I; i++)
                        sum[j][i] = p ? sum[j][i] + part[j][i] : part[j][i];
            }
            for (int64_t j = 0; j < J && j0 + j < w->n; j++)
                for (int64_t i = 0; i < I && i0 + i < w->m; i++)
                    store(w, i0 + i, j0 + j, sum[j][i]);
        }
    }
}
