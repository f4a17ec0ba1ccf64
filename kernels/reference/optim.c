// optim.c: the sum of squares for gradient norms, AdamW (Loshchilov and Hutter 2019) and Muon (K.
// Jordan 2024).
#include "number.h"
#include "ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static rlhf_status sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(x, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "sumsq", uses, 1));
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        const double v = (double)rlhf__ref_f32(x)[i];
        sum += v * v;
    }
    *host_out = sum;
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// ---- AdamW ----

// The step of AdamW without weight decay. m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2. torch
// corrects the bias of v before it adds eps; TensorFlow 1 corrects it in the learning rate.
// c1 = 1 - b1^step and c2 = 1 - b2^step.
static double step_size(const rlhf_adamw *a, double c1, double c2, double m, double v) {
    if (a->epsilon == RLHF_ADAM_TF1) return a->lr * sqrt(c2) / c1 * m / (sqrt(v) + a->eps);
    return a->lr * (m / c1) / (sqrt(v / c2) + a->eps);
}

static rlhf_status adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                         const rlhf_adamw *how) {
    rlhf_adamw own;
    const rlhf_adamw *a = &own;
    RLHF_TRY(
        rlhf__ref_copy_in(ctx, "adamw", &own, sizeof own, how, RLHF_SIZE_TO(rlhf_adamw, step)));
    const struct rlhf__ref_use uses[] = {
        rlhf__ref_range(w, n, sizeof(float)), rlhf__ref_range(g, n, sizeof(float)),
        rlhf__ref_range(m, n, sizeof(float)), rlhf__ref_range(v, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "adamw", uses, RLHF__REF_COUNT(uses)));
    if (a->step < 1 || (a->epsilon != RLHF_ADAM_TORCH && a->epsilon != RLHF_ADAM_TF1))
        return rlhf__ref_leave(ctx, rlhf__ref_fail(ctx, RLHF_E_INVALID,
                                                   "step %lld (from 1), epsilon form %d (0 or 1)",
                                                   (long long)a->step, a->epsilon));
    const double c1 = 1.0 - pow(a->beta1, (double)a->step);
    const double c2 = 1.0 - pow(a->beta2, (double)a->step);
    for (uint64_t i = 0; i < n; i++) {
        const double grad = a->grad_scale * (double)rlhf__ref_f32(g)[i];
        const double mi = a->beta1 * (double)rlhf__ref_f32(m)[i] + (1.0 - a->beta1) * grad;
        const double vi = a->beta2 * (double)rlhf__ref_f32(v)[i] + (1.0 - a->beta2) * grad * grad;
        const double wi = (double)rlhf__ref_f32(w)[i] * (1.0 - a->lr * a->weight_decay);
        rlhf__ref_f32(m)[i] = (float)mi;
        rlhf__ref_f32(v)[i] = (float)vi;
        rlhf__ref_f32(w)[i] = (float)(wi - step_size(a, c1, c2, mi, vi));
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// ---- many tensors ----

static rlhf_status tensors_read(struct rlhf__ref *r, const char *op, rlhf_tensors *t,
                                const rlhf_tensors *from) {
    return rlhf__ref_copy_in(r, op, t, sizeof *t, from, RLHF_SIZE_TO(rlhf_tensors, weight_decay));
}

static rlhf_status sumsq_many(void *ctx, const rlhf_tensors *from, double max_norm, int32_t skip,
                              rlhf_dev clip) {
    rlhf_tensors t;
    RLHF_TRY(tensors_read(ctx, "sumsq_many", &t, from));
    double sum = 0, part = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        RLHF_TRY(sumsq(ctx, t.g[i], t.len[i], &part));
        sum += part;
    }
    const double norm = sqrt(sum);
    const double scale = max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(clip, 1, sizeof(rlhf_clip))};
    RLHF_TRY(rlhf__ref_enter(ctx, "sumsq_many", uses, RLHF__REF_COUNT(uses)));
    *(rlhf_clip *)rlhf__ref_mem(clip) = (rlhf_clip){sum, norm, scale, skip || !isfinite(norm), 0};
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status adamw_many(void *ctx, const rlhf_tensors *from, const rlhf_adamw *how,
                              rlhf_dev clip_at) {
    rlhf_tensors t;
    rlhf_adamw all;
    RLHF_TRY(tensors_read(ctx, "adamw_many", &t, from));
    RLHF_TRY(rlhf__ref_copy_in(ctx, "adamw_many", &all, sizeof all, how,
                               RLHF_SIZE_TO(rlhf_adamw, step)));
    rlhf_clip clip = {0, 0, 1, 0, 0};
    const struct rlhf__ref_use uses[] = {rlhf__ref_optional(clip_at, 1, sizeof clip)};
    RLHF_TRY(rlhf__ref_enter(ctx, "adamw_many", uses, RLHF__REF_COUNT(uses)));
    if (clip_at) memcpy(&clip, rlhf__ref_mem(clip_at), sizeof clip);
    RLHF_TRY(rlhf__ref_leave(ctx, RLHF_OK));
    for (uint32_t i = 0; i < t.n; i++) {
        rlhf_adamw a = all;
        a.size = sizeof a; // the caller's struct may be longer
        if (!clip.skip && t.w[i]) {
            a.lr *= t.lr[i];
            a.weight_decay *= t.weight_decay[i];
            a.grad_scale *= clip.scale;
            RLHF_TRY(adamw(ctx, t.w[i], t.g[i], t.m[i], t.v[i], t.len[i], &a));
        }
        const struct rlhf__ref_use g[] = {rlhf__ref_range(t.g[i], t.len[i], sizeof(float))};
        RLHF_TRY(rlhf__ref_enter(ctx, "adamw_many", g, RLHF__REF_COUNT(g)));
        memset(rlhf__ref_mem(t.g[i]), 0, t.len[i] * sizeof(float));
        RLHF_TRY(rlhf__ref_leave(ctx, RLHF_OK));
    }
    return RLHF_OK;
}

// ---- Muon ----
//
// Momentum, orthogonalized by a quintic Newton-Schulz iteration. One step is
// X = a X + (b A + c A^2) X with A = X X^T. If a matrix has more rows than columns, the iteration
// runs on its transpose: in exact arithmetic the result is the same, and A is smaller.

#define NS_A 3.4445
#define NS_B (-4.7750)
#define NS_C 2.0315

// c[n, m] = a[n, k] b[k, m]. If b_is_t is set, b is stored as [m, k].
static void product(double *c, const double *a, const double *b, uint64_t n, uint64_t k, uint64_t m,
                    int b_is_t) {
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t j = 0; j < m; j++) {
            double sum = 0.0;
            for (uint64_t l = 0; l < k; l++)
                sum += a[i * k + l] * (b_is_t ? b[j * k + l] : b[l * m + j]);
            c[i * m + j] = sum;
        }
    }
}

// Replaces x[n, m], n <= m, with its orthogonalized form. `work` has room for 2 n n + n m numbers.
static void newton_schulz(double *x, double *work, uint64_t n, uint64_t m, int32_t steps) {
    double *gram = work, *poly = work + n * n, *next = work + 2 * n * n;
    for (int32_t s = 0; s < steps; s++) {
        product(gram, x, x, n, m, n, 1);
        product(poly, gram, gram, n, n, n, 0);
        for (uint64_t i = 0; i < n * n; i++)
            poly[i] = NS_B * gram[i] + NS_C * poly[i];
        product(next, poly, x, n, n, m, 0);
        for (uint64_t i = 0; i < n * m; i++)
            x[i] = NS_A * x[i] + next[i];
    }
}

// Update the momentum `mom`. Write the direction of the update, divided by its norm, to x. x is
// [rows, cols] or, if rows > cols, the transpose. A zero direction stays zero.
static void direction(double *x, float *mom, const float *g, uint64_t rows, uint64_t cols,
                      const rlhf_muon *a) {
    double sum = 0.0;
    for (uint64_t i = 0; i < rows * cols; i++) {
        const double grad = a->grad_scale * (double)g[i];
        const double next = a->momentum * (double)mom[i] + grad;
        const double u = a->nesterov ? grad + a->momentum * next : next;
        mom[i] = (float)next;
        x[rows > cols ? i % cols * rows + i / cols : i] = u;
        sum += u * u;
    }
    const double scale = sum > 0.0 ? 1.0 / sqrt(sum) : 0.0;
    for (uint64_t i = 0; i < rows * cols; i++)
        x[i] *= scale;
}

// The number of outputs divided by the number of inputs.
static double aspect(const rlhf_muon *a, int32_t rows, int32_t cols) {
    return a->in_out ? (double)cols / (double)rows : (double)rows / (double)cols;
}

static rlhf_status muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows, int32_t cols,
                        const rlhf_muon *how) {
    rlhf_muon own;
    const rlhf_muon *a = &own;
    RLHF_TRY(
        rlhf__ref_copy_in(ctx, "muon", &own, sizeof own, how, RLHF_SIZE_TO(rlhf_muon, grad_scale)));
    RLHF_TRY(rlhf__ref_check_width(ctx, "muon", cols));
    RLHF_TRY(rlhf__ref_check_width(ctx, "muon", rows));
    const uint64_t nr = (uint64_t)rows, nc = (uint64_t)cols, n = nr < nc ? nr : nc, size = nr * nc;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(w, size, sizeof(float)),
                                         rlhf__ref_range(g, size, sizeof(float)),
                                         rlhf__ref_range(mom, size, sizeof(float))};
    double *x;
    RLHF_TRY(rlhf__ref_scratch(ctx, 2 * size + 2 * n * n, sizeof *x, &x));
    rlhf_status st = rlhf__ref_enter(ctx, "muon", uses, RLHF__REF_COUNT(uses));
    if (st == RLHF_OK) {
        direction(x, rlhf__ref_f32(mom), rlhf__ref_f32(g), nr, nc, a);
        newton_schulz(x, x + size, n, nr < nc ? nc : nr, a->ns_steps);
        const double ratio = aspect(a, rows, cols), lr = a->lr * sqrt(ratio > 1.0 ? ratio : 1.0);
        for (uint64_t i = 0; i < size; i++) {
            const double u = x[nr > nc ? i % nc * nr + i / nc : i];
            const double wi = (double)rlhf__ref_f32(w)[i] * (1.0 - a->lr * a->weight_decay);
            rlhf__ref_f32(w)[i] = (float)(wi - lr * u);
        }
    }
    free(x);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_optim(rlhf_compute *t) {
    t->sumsq = sumsq;
    t->adamw = adamw;
    t->sumsq_many = sumsq_many;
    t->adamw_many = adamw_many;
    t->muon = muon;
}
