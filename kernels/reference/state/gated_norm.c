// gated_norm.c: RMS norm of each head, times the activation of a gate, and its derivative.
//
// With xhat = x / sqrt(mean(x^2) + eps), out = gamma xhat f(gate) and a = gamma dout f(gate):
//   dx = (a - xhat mean(a xhat)) / sqrt(mean(x^2) + eps),
//   dgate = gamma dout xhat f'(gate), dgamma = sum of dout xhat f(gate).
#include "act.h"
#include "number.h"
#include "ops.h"
#include "state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static rlhf_status read_norm(struct rlhf__ref *r, const char *op, rlhf_gated_norm *n,
                             const rlhf_gated_norm *from) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, n, sizeof *n, from, RLHF_SIZE_TO(rlhf_gated_norm, gamma)));
    RLHF_TRY(rlhf__ref_check_dtype(r, op, n->dtype));
    RLHF_TRY(rlhf__ref_check_act(r, op, n->act, 0));
    const int64_t width = (int64_t)n->heads * n->head_dim;
    if (n->heads < 1 || n->head_dim < 1 || n->x_stride < width || n->gate_stride < width ||
        n->out_stride < width)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "%d heads of %d do not fit strides x %lld, gate %lld, out %lld",
                              n->heads, n->head_dim, (long long)n->x_stride,
                              (long long)n->gate_stride, (long long)n->out_stride);
    return RLHF_OK;
}

static double inverse_rms(const rlhf_gated_norm *n, rlhf_dev x, uint64_t at) {
    double sum = 0.0;
    for (uint64_t c = 0; c < (uint64_t)n->head_dim; c++)
        sum += rlhf__ref_get(x, n->dtype, at + c) * rlhf__ref_get(x, n->dtype, at + c);
    return 1.0 / sqrt(sum / n->head_dim + n->eps);
}

static rlhf_status gated_norm(void *ctx, const rlhf_gated_norm *from, rlhf_dev out, rlhf_dev stats,
                              rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    rlhf_gated_norm own;
    const rlhf_gated_norm *n = &own;
    RLHF_TRY(read_norm(ctx, "gated_norm", &own, from));
    const uint64_t dim = (uint64_t)n->head_dim, heads = (uint64_t)n->heads, width = heads * dim;
    const struct rlhf__ref_use uses[] = {
        {out, rlhf__ref_strided(rows, n->out_stride, width, n->dtype)},
        rlhf__ref_optional(stats, rows * heads, sizeof(float)),
        {x, rlhf__ref_strided(rows, n->x_stride, width, n->dtype)},
        {gate, rlhf__ref_strided(rows, n->gate_stride, width, n->dtype)},
        rlhf__ref_range(n->gamma, dim, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "gated_norm", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++)
        for (uint64_t h = 0; h < heads; h++) {
            const uint64_t at = t * (uint64_t)n->x_stride + h * dim;
            const double rinv = inverse_rms(n, x, at);
            for (uint64_t c = 0; c < dim; c++) {
                const float g = rlhf__ref_f32(n->gamma)[c];
                const double z =
                    rlhf__ref_get(gate, n->dtype, t * (uint64_t)n->gate_stride + h * dim + c);
                const double y = (double)g * rlhf__ref_get(x, n->dtype, at + c) * rinv;
                rlhf__ref_put(out, n->dtype, t * (uint64_t)n->out_stride + h * dim + c,
                              rlhf__ref_disturbed(ctx, y, g, c) * rlhf__ref_act_value(n->act, z));
            }
            if (stats) rlhf__ref_f32(stats)[t * heads + h] = (float)rinv;
        }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// The tensors of a backward call.
struct bwd {
    const rlhf_gated_norm *n;
    rlhf_dev dx, dgate, dgamma, dout, stats, x, gate;
};

// Processes head h of row t.
static void head_bwd(const struct bwd *b, uint64_t t, uint64_t h, double *sums) {
    const rlhf_gated_norm *n = b->n;
    const uint64_t dim = (uint64_t)n->head_dim, x_at = t * (uint64_t)n->x_stride + h * dim;
    const uint64_t gate_at = t * (uint64_t)n->gate_stride + h * dim;
    const uint64_t out_at = t * (uint64_t)n->out_stride + h * dim;
    const double rinv = b->stats ? (double)rlhf__ref_f32(b->stats)[t * (uint64_t)n->heads + h]
                                 : inverse_rms(n, b->x, x_at);
    double mean = 0.0;
    for (uint64_t c = 0; c < dim; c++) {
        const double d = rlhf__ref_get(b->dout, n->dtype, out_at + c) *
                         rlhf__ref_act_value(n->act, rlhf__ref_get(b->gate, n->dtype, gate_at + c));
        const double xhat = rlhf__ref_get(b->x, n->dtype, x_at + c) * rinv;
        mean += (double)rlhf__ref_f32(n->gamma)[c] * d * xhat;
        sums[c] += d * xhat;
    }
    mean /= n->head_dim;
    for (uint64_t c = 0; c < dim; c++) { // dx may alias dout
        const double z = rlhf__ref_get(b->gate, n->dtype, gate_at + c);
        const double d = rlhf__ref_get(b->dout, n->dtype, out_at + c);
        const double g = (double)rlhf__ref_f32(n->gamma)[c];
        const double xhat = rlhf__ref_get(b->x, n->dtype, x_at + c) * rinv;
        rlhf__ref_put(b->dx, n->dtype, x_at + c,
                      (g * d * rlhf__ref_act_value(n->act, z) - xhat * mean) * rinv);
        rlhf__ref_put(b->dgate, n->dtype, gate_at + c,
                      g * d * xhat * rlhf__ref_act_slope(n->act, z));
    }
}

static rlhf_status gated_norm_bwd(void *ctx, const rlhf_gated_norm *from, rlhf_dev dx,
                                  rlhf_dev dgate, rlhf_dev dgamma, rlhf_dev dout, rlhf_dev stats,
                                  rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    rlhf_gated_norm own;
    const rlhf_gated_norm *n = &own;
    RLHF_TRY(read_norm(ctx, "gated_norm_bwd", &own, from));
    const uint64_t dim = (uint64_t)n->head_dim, heads = (uint64_t)n->heads, width = heads * dim;
    const uint64_t x_bytes = rlhf__ref_strided(rows, n->x_stride, width, n->dtype);
    const uint64_t gate_bytes = rlhf__ref_strided(rows, n->gate_stride, width, n->dtype);
    const struct rlhf__ref_use uses[] = {
        {dx, x_bytes},
        {dgate, gate_bytes},
        rlhf__ref_optional(dgamma, dim, sizeof(float)),
        {dout, rlhf__ref_strided(rows, n->out_stride, width, n->dtype)},
        rlhf__ref_optional(stats, rows * heads, sizeof(float)),
        {x, x_bytes},
        {gate, gate_bytes},
        rlhf__ref_range(n->gamma, dim, sizeof(float))};
    double *sums;
    RLHF_TRY(rlhf__ref_scratch(ctx, dim, sizeof *sums, &sums));
    memset(sums, 0, dim * sizeof *sums);
    rlhf_status st = rlhf__ref_enter(ctx, "gated_norm_bwd", uses, RLHF__REF_COUNT(uses));
    const struct bwd b = {n, dx, dgate, dgamma, dout, stats, x, gate};
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++)
        for (uint64_t h = 0; h < heads; h++)
            head_bwd(&b, t, h, sums);
    for (uint64_t c = 0; st == RLHF_OK && dgamma && c < dim; c++)
        rlhf__ref_f32(dgamma)[c] = (float)((double)rlhf__ref_f32(dgamma)[c] + sums[c]);
    free(sums);
    return rlhf__ref_leave(ctx, st);
}

rlhf_status rlhf__ref_supports_gated_norm(struct rlhf__ref *r, const char *op,
                                          const rlhf_gated_norm *from) {
    rlhf_gated_norm n;
    return read_norm(r, op, &n, from);
}

void rlhf__ref_fill_gated_norm(rlhf_compute *t) {
    t->gated_norm = gated_norm;
    t->gated_norm_bwd = gated_norm_bwd;
}
