// optim.c: AdamW (Loshchilov and Hutter 2019) and the sum of squares, over flat f32 arrays.
#include "product.h"
#include "table.h"

#include <math.h>
#include <string.h>

#define PIECE ((uint64_t)1 << 16) // elements; fixed, so that no result depends on the threads

// ---- one tensor ----

static rlhf_status sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
    struct rlhf__cpu *cpu = ctx;
    const uint64_t pieces = (n + PIECE - 1) / PIECE;
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_ROWS, pieces * sizeof(double), &p));
    double *part = p, sum = 0.0;
    cpu->lm_kept.valid = 0; // its statistics lie in the same workspace
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t at = i * PIECE, len = n - at < PIECE ? n - at : PIECE;
        cpu->hot.sumsq(&part[i], rlhf__cpu_f32(x) + at, len);
    }
    for (uint64_t i = 0; i < pieces; i++)
        sum += part[i];
    *host_out = sum;
    return RLHF_OK;
}

// torch: lr (m / c1) / (sqrt(v / c2) + eps); tf1: lr sqrt(c2) / c1 m / (sqrt(v) + eps); ci = 1 -
// bi^t.
static struct rlhf__adam_step step_of(const rlhf_adamw *a) {
    const double c1 = 1.0 - pow(a->beta1, (double)a->step);
    const double c2 = 1.0 - pow(a->beta2, (double)a->step);
    const int tf1 = a->epsilon == RLHF_ADAM_TF1;
    return (struct rlhf__adam_step){
        .grad_scale = (float)a->grad_scale,
        .beta1 = (float)a->beta1,
        .beta1_rest = (float)(1.0 - a->beta1),
        .beta2 = (float)a->beta2,
        .beta2_rest = (float)(1.0 - a->beta2),
        .decay = (float)(1.0 - a->lr * a->weight_decay),
        .step = (float)(tf1 ? a->lr * sqrt(c2) / c1 : a->lr / c1),
        .root_scale = (float)(tf1 ? 1.0 : 1.0 / sqrt(c2)),
        .eps = (float)a->eps,
    };
}

static rlhf_status adamw_read(struct rlhf__cpu *cpu, const char *op, rlhf_adamw *a,
                              const rlhf_adamw *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_adamw, step)));
    if (a->step < 1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: step is %lld, the first is 1", op,
                              (long long)a->step);
    if (a->epsilon != RLHF_ADAM_TORCH && a->epsilon != RLHF_ADAM_TF1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: epsilon form is %d, allowed are 0 and 1",
                              op, a->epsilon);
    return RLHF_OK;
}

// zero: g is zero afterwards.
static void update(struct rlhf__cpu *cpu, float *w, float *g, float *m, float *v, uint64_t n,
                   const rlhf_adamw *a, int zero) {
    const struct rlhf__adam_step s = step_of(a);
    const uint64_t pieces = (n + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t at = i * PIECE, len = n - at < PIECE ? n - at : PIECE;
        cpu->hot.adamw(w + at, g + at, m + at, v + at, len, &s);
        if (zero) memset(g + at, 0, len * sizeof *g);
    }
}

static rlhf_status adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                         const rlhf_adamw *how) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_adamw a;
    RLHF_TRY(adamw_read(cpu, "adamw", &a, how));
    update(cpu, rlhf__cpu_f32(w), rlhf__cpu_f32(g), rlhf__cpu_f32(m), rlhf__cpu_f32(v), n, &a, 0);
    return RLHF_OK;
}

// ---- many tensors ----

static rlhf_status tensors_read(struct rlhf__cpu *cpu, const char *op, rlhf_tensors *t,
                                const rlhf_tensors *from) {
    return rlhf__cpu_copy_in(cpu, op, t, sizeof *t, from, RLHF_SIZE_TO(rlhf_tensors, weight_decay));
}

static rlhf_status sumsq_many(void *ctx, const rlhf_tensors *from, double max_norm, int32_t skip,
                              rlhf_dev out) {
    rlhf_tensors t;
    RLHF_TRY(tensors_read(ctx, "sumsq_many", &t, from));
    rlhf_clip *clip = rlhf__cpu_mem(out);
    double sum = 0, part = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        RLHF_TRY(sumsq(ctx, t.g[i], t.len[i], &part));
        sum += part;
    }
    const double norm = sqrt(sum);
    const double scale = max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
    *clip = (rlhf_clip){sum, norm, scale, skip || !isfinite(norm), 0};
    return RLHF_OK;
}

static rlhf_status adamw_many(void *ctx, const rlhf_tensors *from, const rlhf_adamw *how,
                              rlhf_dev clip_at) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_tensors t;
    rlhf_adamw all;
    RLHF_TRY(tensors_read(cpu, "adamw_many", &t, from));
    RLHF_TRY(adamw_read(cpu, "adamw_many", &all, how));
    const rlhf_clip none = {0, 0, 1, 0, 0};
    const rlhf_clip *clip = clip_at ? rlhf__cpu_mem(clip_at) : &none;
    for (uint32_t i = 0; i < t.n; i++) {
        if (clip->skip || !t.w[i]) {
            RLHF_TRY(cpu->table.zero(cpu, t.g[i], t.len[i] * sizeof(float)));
            continue;
        }
        rlhf_adamw a = all;
        a.lr *= t.lr[i];
        a.weight_decay *= t.weight_decay[i];
        a.grad_scale *= clip->scale;
        update(cpu, rlhf__cpu_f32(t.w[i]), rlhf__cpu_f32(t.g[i]), rlhf__cpu_f32(t.m[i]),
               rlhf__cpu_f32(t.v[i]), t.len[i], &a, 1);
    }
    return RLHF_OK;
}

void rlhf__cpu_fill_optim(rlhf_compute *t) {
    t->sumsq = sumsq;
    t->adamw = adamw;
    t->sumsq_many = sumsq_many;
    t->adamw_many = adamw_many;
}
