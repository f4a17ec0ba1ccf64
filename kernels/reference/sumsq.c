// sumsq.c: sum of squares, for gradient norms.
#include "number.h"
#include "ops.h"

rlhf_status rlhf__ref_sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
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
