// norm.c: LayerNorm and RMS norm over the last axis, and their derivatives.
//
// LayerNorm:
// xhat = (x - mean) / sqrt(var + eps), out = gamma xhat + beta, where var is the biased variance.
// dx = (a - mean(a) - xhat mean(a xhat)) / sqrt(var + eps) with a = gamma dy.
//
// RMS norm (Zhang and Sennrich 2019):
// xhat = x / sqrt(mean(x^2) + eps), out = gamma xhat.
// dx = (a - xhat mean(a xhat)) / sqrt(mean(x^2) + eps) with a = gamma dy.
#include "number.h"
#include "ops.h"
#include <math.h>

static rlhf_status norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                        rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "norm", d));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "norm", out_dtype));
    const uint64_t n = (uint64_t)d;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, rows * n, rlhf_dtype_size(out_dtype)),
                                         rlhf__ref_optional(stats, rows, 2 * sizeof(float)),
                                         rlhf__ref_range(x, rows * n, sizeof(float)),
                                         rlhf__ref_range(gamma, n, sizeof(float)),
                                         rlhf__ref_range(beta, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "norm", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++) {
        const float *xt = rlhf__ref_f32(x) + t * n;
        double mean = 0.0, var = 0.0;
        for (uint64_t c = 0; c < n; c++)
            mean += (double)xt[c];
        mean /= (double)n;
        for (uint64_t c = 0; c < n; c++)
            var += ((double)xt[c] - mean) * ((double)xt[c] - mean);
        const double rstd = 1.0 / sqrt(var / (double)n + eps);
        for (uint64_t c = 0; c < n; c++) {
            const double xhat = ((double)xt[c] - mean) * rstd;
            const float g = rlhf__ref_f32(gamma)[c];
            const double y = (double)g * xhat + (double)rlhf__ref_f32(beta)[c];
            rlhf__ref_put(out, out_dtype, t * n + c, rlhf__ref_disturbed(ctx, y, g, c));
        }
        if (!stats) continue;
        rlhf__ref_f32(stats)[2 * t] = (float)mean;
        rlhf__ref_f32(stats)[2 * t + 1] = (float)rstd;
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// dx of one row; `at` is the element of dy at which the row begins.
static void norm_bwd_row(float *dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype, uint64_t at,
                         const float *x, const float *gamma, const float *stats, uint64_t n) {
    const double mean = (double)stats[0], rstd = (double)stats[1];
    double sum_a = 0.0, sum_ax = 0.0;
    for (uint64_t c = 0; c < n; c++) {
        const double a = (double)gamma[c] * rlhf__ref_get(dy, dy_dtype, at + c);
        sum_a += a;
        sum_ax += a * ((double)x[c] - mean) * rstd;
    }
    for (uint64_t c = 0; c < n; c++) {
        const double a = (double)gamma[c] * rlhf__ref_get(dy, dy_dtype, at + c);
        const double xhat = ((double)x[c] - mean) * rstd;
        const double g = (a - (sum_a + xhat * sum_ax) / (double)n) * rstd;
        dx[c] = (float)((accumulate ? (double)dx[c] : 0.0) + g);
    }
}

// dgamma[c] and dbeta[c], summed over all rows.
static void norm_bwd_column(float *dgamma, float *dbeta, rlhf_dev dy, int32_t dy_dtype,
                            const float *x, const float *stats, uint64_t rows, uint64_t n,
                            uint64_t c) {
    double sum_g = 0.0, sum_b = 0.0;
    for (uint64_t t = 0; t < rows; t++) {
        const double g = rlhf__ref_get(dy, dy_dtype, t * n + c);
        sum_g += g * ((double)x[t * n + c] - (double)stats[2 * t]) * (double)stats[2 * t + 1];
        sum_b += g;
    }
    if (dgamma) dgamma[c] = (float)((double)dgamma[c] + sum_g);
    if (dbeta) dbeta[c] = (float)((double)dbeta[c] + sum_b);
}

static rlhf_status norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                            rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                            rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d) {
    RLHF_TRY(rlhf__ref_check_width(ctx, "norm_bwd", d));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "norm_bwd", dy_dtype));
    const uint64_t n = (uint64_t)d;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dx, rows * n, sizeof(float)),
                                         rlhf__ref_optional(dgamma, n, sizeof(float)),
                                         rlhf__ref_optional(dbeta, n, sizeof(float)),
                                         rlhf__ref_range(dy, rows * n, rlhf_dtype_size(dy_dtype)),
                                         rlhf__ref_range(x, rows * n, sizeof(float)),
                                         rlhf__ref_range(stats, rows, 2 * sizeof(float)),
                                         rlhf__ref_range(gamma, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "norm_bwd", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++)
        norm_bwd_row(rlhf__ref_f32(dx) + t * n, accumulate, dy, dy_dtype, t * n,
                     rlhf__ref_f32(x) + t * n, rlhf__ref_f32(gamma), rlhf__ref_f32(stats) + 2 * t,
                     n);
    for (uint64_t c = 0; (dgamma || dbeta) && c < n; c++)
        norm_bwd_column(rlhf__ref_f32(dgamma), rlhf__ref_f32(dbeta), dy, dy_dtype, rlhf__ref_f32(x),
                        rlhf__ref_f32(stats), rows, n, c);
    return rlhf__ref_leave(ctx, RLHF_OK);
}

void rlhf__ref_fill_norm(rlhf_compute *t) {
    t->norm = norm;
    t->norm_bwd = norm_bwd;
}

// ---- RMS norm ----

static rlhf_status rms_norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                            rlhf_dev gamma, double offset, double eps, uint32_t rows, int32_t d) {
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
        for (uint64_t c = 0; c < n; c++) {
            const float g = (float)offset + rlhf__ref_f32(gamma)[c];
            const double y = (double)g * (double)xt[c] * rinv;
            rlhf__ref_put(out, out_dtype, t * n + c, rlhf__ref_disturbed(ctx, y, g, c));
        }
        if (stats) rlhf__ref_f32(stats)[t] = (float)rinv;
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// dx of one row; `at` is the element of dy at which the row begins.
static void bwd_row(float *dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype, uint64_t at,
                    const float *x, const float *gamma, float offset, double rinv, uint64_t n) {
    double sum = 0.0;
    for (uint64_t c = 0; c < n; c++)
        sum +=
            (double)(offset + gamma[c]) * rlhf__ref_get(dy, dy_dtype, at + c) * (double)x[c] * rinv;
    for (uint64_t c = 0; c < n; c++) {
        const double a = (double)(offset + gamma[c]) * rlhf__ref_get(dy, dy_dtype, at + c);
        const double g = (a - (double)x[c] * rinv * sum / (double)n) * rinv;
        dx[c] = (float)((accumulate ? (double)dx[c] : 0.0) + g);
    }
}

static rlhf_status rms_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                                rlhf_dev dy, int32_t dy_dtype, rlhf_dev x, rlhf_dev stats,
                                rlhf_dev gamma, double offset, uint32_t rows, int32_t d) {
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
                rlhf__ref_f32(gamma), (float)offset, (double)rinv[t], n);
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
