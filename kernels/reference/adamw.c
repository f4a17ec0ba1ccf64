// adamw.c: AdamW (Loshchilov and Hutter 2019) with torch's or TensorFlow 1's place for epsilon.
//
// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2; decoupled weight decay comes first in both forms.
#include "number.h"
#include "ops.h"
#include <math.h>

static double step_size(const rlhf_adamw *a, double m, double v) {
    const double c1 = 1.0 - pow(a->beta1, (double)a->step);
    const double c2 = 1.0 - pow(a->beta2, (double)a->step);
    if (a->epsilon == RLHF_ADAM_TF1) return a->lr * sqrt(c2) / c1 * m / (sqrt(v) + a->eps);
    return a->lr * (m / c1) / (sqrt(v / c2) + a->eps);
}

rlhf_status rlhf__ref_adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
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
    for (uint64_t i = 0; i < n; i++) {
        const double grad = a->grad_scale * (double)rlhf__ref_f32(g)[i];
        const double mi = a->beta1 * (double)rlhf__ref_f32(m)[i] + (1.0 - a->beta1) * grad;
        const double vi = a->beta2 * (double)rlhf__ref_f32(v)[i] + (1.0 - a->beta2) * grad * grad;
        const double wi = (double)rlhf__ref_f32(w)[i] * (1.0 - a->lr * a->weight_decay);
        rlhf__ref_f32(m)[i] = (float)mi;
        rlhf__ref_f32(v)[i] = (float)vi;
        rlhf__ref_f32(w)[i] = (float)(wi - step_size(a, mi, vi));
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}
