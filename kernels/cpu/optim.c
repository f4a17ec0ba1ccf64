// optim.c: AdamW (Loshchilov and Hutter 2019) and the sum of squares, over flat f32 arrays.
#include "product.h"
#include "table.h"

#include <math.h>

#define PIECE ((uint64_t)1 << 16) // elements; fixed, so that no result depends on the threads

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

static rlhf_status adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                         const rlhf_adamw *how) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_adamw own;
    const rlhf_adamw *a = &own;
    RLHF_TRY(
        rlhf__cpu_copy_in(cpu, "adamw", &own, sizeof own, how, RLHF_SIZE_TO(rlhf_adamw, step)));
    if (a->step < 1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "adamw: step is %lld, the first is 1",
                              (long long)a->step);
    if (a->epsilon != RLHF_ADAM_TORCH && a->epsilon != RLHF_ADAM_TF1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "adamw: epsilon form is %d, allowed are 0 and 1",
                              a->epsilon);
    const struct rlhf__adam_step s = step_of(a);
    const uint64_t pieces = (n + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t at = i * PIECE, len = n - at < PIECE ? n - at : PIECE;
        cpu->hot.adamw(rlhf__cpu_f32(w) + at, rlhf__cpu_f32(g) + at, rlhf__cpu_f32(m) + at,
                       rlhf__cpu_f32(v) + at, len, &s);
    }
    return RLHF_OK;
}

void rlhf__cpu_fill_optim(rlhf_compute *t) {
    t->sumsq = sumsq;
    t->adamw = adamw;
}
