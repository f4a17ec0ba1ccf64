// rms_norm.c: RMS norm over the last axis (Zhang and Sennrich 2019), and its derivative.
//
// xhat = x / sqrt(mean(x^2) + eps), out = gamma xhat.
// dx = (a - xhat mean(a xhat)) / sqrt(mean(x^2) + eps) with a = gamma dy.
#include "number.h"
#include "ops.h"
#include <math.h>

static rlhf_status rms_norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                            rlhf_dev gamma, double eps, uint32_t rows, int32_t d) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "rms_norm", d));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "rms_norm", out_dtype));
    const uint64_t n = (uint64_t)d;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, rows * n, rlhf_dtype_size(out_dtype)),
                                         rlhf__ref_optional(stats, rows, sizeof(float)),
                                         rlhf__ref_range(x, rows * n, sizeof(float)),
                                         rlhf__ref_range(gamma, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "rms_norm", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++) {
        const float *xt = rlhf__ref_f32(x) + t * n;
        double sum = 0.0;
        for (uint64_t c = 0; c < n; c++)
            sum += (double)xt[c] * (double)xt[c];
        const double rinv = 1.0 / sqrt(sum / (double)n + eps);
        for (uint64_t c = 0; c < n; c++)
            rlhf__ref_put(out, out_dtype, t * n + c,
                          (double)rlhf__ref_f32(gamma)[c] * (double)xt[c] * rinv);
        if (stats) rlhf__ref_f32(stats)[t] = (float)rinv;
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// dx of one row; `at` is the element of dy at which the row begins.
static void bwd_row(float *dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype, uint64_t at,
                    const float *x, const float *gamma, double rinv, uint64_t n) {
    double sum = 0.0;
    for (uint64_t c = 0; c < n; c++)
        sum += (double)gamma[c] * rlhf__ref_get(dy, dy_dtype, at + c) * (double)x[c] * rinv;
    for (uint64_t c = 0; c < n; c++) {
        const double a = (double)gamma[c] * rlhf__ref_get(dy, dy_dtype, at + c);
        const double g = (a - (double)x[c] * rinv * sum / (double)n) * rinv;
        dx[c] = (float)((accumulate ? (double)dx[c] : 0.0) + g);
    }
}

static rlhf_status rms_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                                rlhf_dev dy, int32_t dy_dtype, rlhf_dev x, rlhf_dev stats,
                                rlhf_dev gamma, uint32_t rows, int32_t d) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "rms_norm_bwd", d));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "rms_norm_bwd", dy_dtype));
    const uint64_t n = (uint64_t)d;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dx, rows * n, sizeof(float)),
                                         rlhf__ref_optional(dgamma, n, sizeof(float)),
                                         rlhf__ref_range(dy, rows * n, rlhf_dtype_size(dy_dtype)),
                                         rlhf__ref_range(x, rows * n, sizeof(float)),
                                         rlhf__ref_range(stats, rows, sizeof(float)),
                                         rlhf__ref_range(gamma, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "rms_norm_bwd", uses, RLHF__REF_COUNT(uses)));
    const float *rinv = rlhf__ref_f32(stats), *from = rlhf__ref_f32(x);
    for (uint64_t t = 0; t < rows; t++)
        bwd_row(rlhf__ref_f32(dx) + t * n, accumulate, dy, dy_dtype, t * n, from + t * n,
                rlhf__ref_f32(gamma), (double)rinv[t], n);
    for (uint64_t c = 0; dgamma && c < n; c++) {
        double sum = (double)rlhf__ref_f32(dgamma)[c];
        for (uint64_t t = 0; t < rows; t++)
            sum +=
                rlhf__ref_get(dy, dy_dtype, t * n + c) * (double)from[t * n + c] * (double)rinv[t];
        rlhf__ref_f32(dgamma)[c] = (float)sum;
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

void rlhf__ref_fill_rms_norm(rlhf_compute *t) {
    t->rms_norm = rms_norm;
    t->rms_norm_bwd = rms_norm_bwd;
}
