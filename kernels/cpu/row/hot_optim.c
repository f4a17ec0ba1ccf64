// hot_optim.c: the element loops of the optimizers, sums of squares, and sums of columns.
#include "machine/hot.h"
#include "machine/vec.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

// ---- AdamW ----

struct adam {
    vf scale, b1, r1, b2, r2, decay, step, root, eps;
};

// Loads or stores the first `l` lanes. If these are all lanes, pass the constant VF_LANES, so that
// the compiler uses an ordinary access. Masked accesses are slow at some levels.
INLINE vf load(const float *p, size_t l) { return l == VF_LANES ? vf_load(p) : vf_load_n(p, l); }

INLINE void store(float *p, vf v, size_t l) {
    if (l == VF_LANES)
        vf_store(p, v);
    else
        vf_store_n(p, v, l);
}

INLINE void adam_lanes(float *w, float *g, float *m, float *v, size_t l, const int zero,
                       const struct adam *a) {
    vf gv = vf_mul(load(g, l), a->scale);
    vf mv = vf_fma(load(m, l), a->b1, vf_mul(gv, a->r1));
    vf vv = vf_fma(load(v, l), a->b2, vf_mul(vf_mul(gv, gv), a->r2));
    vf u = vf_div(vf_mul(a->step, mv), vf_fma(vf_sqrt(vv), a->root, a->eps));
    store(m, mv, l);
    store(v, vv, l);
    store(w, vf_sub(vf_mul(load(w, l), a->decay), u), l);
    if (zero) store(g, vf_zero(), l);
}

INLINE void adam_all(float *w, float *g, float *m, float *v, size_t n, const int zero,
                     const struct adam *a) {
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        adam_lanes(w + i, g + i, m + i, v + i, VF_LANES, zero, a);
    if (i < n) adam_lanes(w + i, g + i, m + i, v + i, n - i, zero, a);
}

void RLHF__HOT(adamw)(float *w, float *g, float *m, float *v, size_t n,
                      const struct rlhf__adam_step *s) {
    const struct adam a = {vf_set1(s->grad_scale), vf_set1(s->beta1),      vf_set1(s->beta1_rest),
                           vf_set1(s->beta2),      vf_set1(s->beta2_rest), vf_set1(s->decay),
                           vf_set1(s->step),       vf_set1(s->root_scale), vf_set1(s->eps)};
    if (s->zero_grad)
        adam_all(w, g, m, v, n, 1, &a);
    else
        adam_all(w, g, m, v, n, 0, &a);
}

// ---- sums of squares ----

enum { SUMS = 16, WIDE = VD_LANES, AHEAD = 2048 };

// Sixteen running sums in f64, which are added in order at the end. Every level has the same
// sixteen sums. The hardware prefetcher stops at the end of a page, so the loop also prefetches in
// software.
void RLHF__HOT(sumsq)(double *out, const float *x, size_t n) {
    vd acc[SUMS / WIDE] = {0};
    double part[SUMS], sum = 0.0;
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS) {
        __builtin_prefetch(x + i + AHEAD, 0, 2);
        for (size_t j = 0; j < SUMS / WIDE; j++) {
            const vd v = vd_load_f32(x + i + j * WIDE);
            acc[j] += v * v;
        }
    }
    memcpy(part, acc, sizeof part);
    for (size_t j = 0; i + j < n; j++)
        part[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; j < SUMS; j++)
        sum += part[j];
    *out = sum;
}

// ---- sums over rows ----

enum { ABREAST = 4 }; // adjacent vectors summed together, so that a row is read once

INLINE vf dy_at(const void *dy, int bf16, size_t at, size_t l) {
    if (!bf16) return load((const float *)dy + at, l);
    const uint16_t *h = (const uint16_t *)dy + at;
    return l == VF_LANES ? vf_load_bf16(h) : vf_load_bf16_n(h, l);
}

// f32 rows are summed at three levels: 16 rows, then 16 sums of the first level, then 16 sums of
// the second. A single long f32 sum would lose as much precision as rounding to bf16 does.
enum { SUM_ROWS = 16, SUM_SUMS = 16 * SUM_ROWS, SUM_ALL = 16 * SUM_SUMS };

// For each column of a strip of `vectors` adjacent vectors, add up the rows. If the strip is a
// single vector, it may be the last one of the row, which has only `l` lanes.
INLINE void sum_rows(float *db, const void *dy, const int bf16, size_t rows, const size_t vectors,
                     const size_t l, size_t stride) {
    const size_t steps[3] = {bf16 ? rows : SUM_ROWS, bf16 ? rows : SUM_SUMS, bf16 ? rows : SUM_ALL};
    vf sum[3][ABREAST];
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < vectors; j++)
            sum[i][j] = vf_zero();
    for (size_t r = 0, n; r < rows; r += n) {
        n = rows - r < steps[0] ? rows - r : steps[0];
        for (size_t i = r; i < r + n; i++)
            for (size_t j = 0; j < vectors; j++)
                sum[0][j] = vf_add(sum[0][j], dy_at(dy, bf16, i * stride + j * VF_LANES, l));
        for (size_t i = 1; i < 3; i++) {
            if (r + n < rows && (r + n) % steps[i - 1]) break;
            for (size_t j = 0; j < vectors; j++) {
                sum[i][j] = vf_add(sum[i][j], sum[i - 1][j]);
                sum[i - 1][j] = vf_zero();
            }
        }
        if (r + n < rows && (r + n) % steps[2]) continue;
        for (size_t j = 0; j < vectors; j++) {
            store(db + j * VF_LANES, vf_add(load(db + j * VF_LANES, l), sum[2][j]), l);
            sum[2][j] = vf_zero();
        }
    }
}

INLINE void sum_columns(float *db, const char *dy, const int bf16, size_t rows, size_t cols,
                        size_t stride) {
    const size_t size = bf16 ? sizeof(uint16_t) : sizeof(float);
    size_t c = 0;
    for (; c + ABREAST * VF_LANES <= cols; c += ABREAST * VF_LANES)
        sum_rows(db + c, dy + c * size, bf16, rows, ABREAST, VF_LANES, stride);
    for (; c + VF_LANES <= cols; c += VF_LANES)
        sum_rows(db + c, dy + c * size, bf16, rows, 1, VF_LANES, stride);
    if (c < cols) sum_rows(db + c, dy + c * size, bf16, rows, 1, cols - c, stride);
}

void RLHF__HOT(column_sums)(float *db, const void *dy, int bf16, size_t rows, size_t cols,
                            size_t stride) {
    if (bf16)
        sum_columns(db, dy, 1, rows, cols, stride);
    else
        sum_columns(db, dy, 0, rows, cols, stride);
}

INLINE void weigh_rows(float *dw, const float *x, const float *dy, size_t rows,
                       const size_t vectors, const size_t l, size_t stride) {
    vf sum[ABREAST];
    for (size_t j = 0; j < vectors; j++)
        sum[j] = vf_zero();
    for (size_t r = 0; r < rows; r++) {
        const vf by = vf_set1(dy[r]);
        for (size_t j = 0; j < vectors; j++)
            sum[j] = vf_fma(by, load(x + r * stride + j * VF_LANES, l), sum[j]);
    }
    for (size_t j = 0; j < vectors; j++)
        store(dw + j * VF_LANES, vf_add(load(dw + j * VF_LANES, l), sum[j]), l);
}

void RLHF__HOT(weighted_sums)(float *dw, const float *x, const float *dy, size_t rows, size_t cols,
                              size_t stride) {
    size_t c = 0;
    for (; c + ABREAST * VF_LANES <= cols; c += ABREAST * VF_LANES)
        weigh_rows(dw + c, x + c, dy, rows, ABREAST, VF_LANES, stride);
    for (; c + VF_LANES <= cols; c += VF_LANES)
        weigh_rows(dw + c, x + c, dy, rows, 1, VF_LANES, stride);
    if (c < cols) weigh_rows(dw + c, x + c, dy, rows, 1, cols - c, stride);
}

// ---- Muon ----

void RLHF__HOT(muon_momentum)(float *u, float *mom, const float *g, size_t n, float momentum,
                              float grad_scale, int nesterov) {
    const vf mu = vf_set1(momentum), gs = vf_set1(grad_scale);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf gv = vf_mul(vf_load_n(g + i, l), gs);
        vf next = vf_fma(vf_load_n(mom + i, l), mu, gv);
        vf_store_n(mom + i, next, l);
        vf_store_n(u + i, nesterov ? vf_fma(next, mu, gv) : next, l);
    }
}

void RLHF__HOT(scale)(float *x, size_t n, float a) {
    const vf av = vf_set1(a);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf_store_n(x + i, vf_mul(vf_load_n(x + i, l), av), l);
    }
}

void RLHF__HOT(blend)(float *out, const float *x, const float *y, size_t n, float a, float b) {
    const vf av = vf_set1(a), bv = vf_set1(b);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf v = vf_fma(vf_load_n(x + i, l), av, vf_mul(vf_load_n(y + i, l), bv));
        vf_store_n(out + i, v, l);
    }
}

void RLHF__HOT(apply_step)(float *w, const float *u, size_t n, float decay, float step) {
    const vf dv = vf_set1(decay), sv = vf_set1(step);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t l = n - i < VF_LANES ? n - i : VF_LANES;
        vf v = vf_fnma(sv, vf_load_n(u + i, l), vf_mul(vf_load_n(w + i, l), dv));
        vf_store_n(w + i, v, l);
    }
}
