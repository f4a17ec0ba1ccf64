// act.c: activation functions and gated units, and their derivatives.
//
// Sigmoid(x) = 1 / (1 + e^-x), SiLU(x) = x / (1 + e^-x) (Elfwing et al. 2017).
// GELU(x) = x Phi(x) (Hendrycks and Gimpel 2016), and its tanh form
// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as used by GPT-2.
#include "act.h"
#include "number.h"
#include "ops.h"
#include <math.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_1_OVER_2  0.70710678118654752440
#define INV_SQRT_2PI   0.39894228040143267794

double rlhf__ref_act_value(int32_t kind, double x) {
    if (kind == RLHF_ACT_RELU) return x > 0.0 ? x : 0.0;
    if (kind == RLHF_ACT_RELU2) return x > 0.0 ? x * x : 0.0;
    if (kind == RLHF_ACT_SILU) return x / (1.0 + exp(-x));
    if (kind == RLHF_ACT_SIGMOID) return 1.0 / (1.0 + exp(-x));
    if (kind == RLHF_ACT_GELU_ERF) return x * 0.5 * erfc(-x * SQRT_1_OVER_2);
    return 0.5 * x * (1.0 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)));
}

double rlhf__ref_act_slope(int32_t kind, double x) {
    if (kind == RLHF_ACT_RELU) return x > 0.0 ? 1.0 : 0.0;
    if (kind == RLHF_ACT_RELU2) return x > 0.0 ? 2.0 * x : 0.0;
    if (kind == RLHF_ACT_SILU) {
        const double s = 1.0 / (1.0 + exp(-x));
        return s * (1.0 + x * (1.0 - s));
    }
    if (kind == RLHF_ACT_SIGMOID) {
        const double s = 1.0 / (1.0 + exp(-x));
        return s * (1.0 - s);
    }
    if (kind == RLHF_ACT_GELU_ERF)
        return 0.5 * erfc(-x * SQRT_1_OVER_2) + x * INV_SQRT_2PI * exp(-0.5 * x * x);
    const double t = tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
    const double inner = SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x);
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner;
}

rlhf_status rlhf__ref_check_act(struct rlhf__ref *r, const char *op, int32_t kind, int none) {
    r->op = op;
    if (kind >= RLHF_ACT_GELU_TANH && kind <= RLHF_ACT_SIGMOID) return RLHF_OK;
    if (none && kind == 0) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "activation %d, known are %d to 6", kind, !none);
}

static rlhf_status check_kind(struct rlhf__ref *r, const char *op, int32_t kind, int32_t dtype) {
    RLHF_TRY(rlhf__ref_check_dtype(r, op, dtype));
    return rlhf__ref_check_act(r, op, kind, 0);
}

static rlhf_status act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n) {
    RLHF_TRY(check_kind(ctx, "act", kind, dtype));
    const uint64_t size = rlhf_dtype_size(dtype);
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, n, size),
                                         rlhf__ref_range(x, n, size)};
    RLHF_TRY(rlhf__ref_enter(ctx, "act", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t i = 0; i < n; i++)
        rlhf__ref_put(out, dtype, i, rlhf__ref_act_value(kind, rlhf__ref_get(x, dtype, i)));
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status act_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                           int32_t dtype, uint64_t n) {
    RLHF_TRY(check_kind(ctx, "act_bwd", kind, dtype));
    const uint64_t size = rlhf_dtype_size(dtype);
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dx, n, size), rlhf__ref_range(dy, n, size),
                                         rlhf__ref_range(x, n, size)};
    RLHF_TRY(rlhf__ref_enter(ctx, "act_bwd", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t i = 0; i < n; i++)
        rlhf__ref_put(dx, dtype, i,
                      rlhf__ref_get(dy, dtype, i) *
                          rlhf__ref_act_slope(kind, rlhf__ref_get(x, dtype, i)));
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status gate(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                        uint32_t rows, int32_t inner) {
    RLHF_TRY(check_kind(ctx, "gate", kind, dtype));
    RLHF_TRY(rlhf__ref_check_width(ctx, "gate", inner));
    const uint64_t n = (uint64_t)inner, size = rlhf_dtype_size(dtype);
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, rows * n, size),
                                         rlhf__ref_range(x, 2 * rows * n, size)};
    RLHF_TRY(rlhf__ref_enter(ctx, "gate", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++)
        for (uint64_t j = 0; j < n; j++)
            rlhf__ref_put(out, dtype, t * n + j,
                          rlhf__ref_act_value(kind, rlhf__ref_get(x, dtype, 2 * t * n + j)) *
                              rlhf__ref_get(x, dtype, (2 * t + 1) * n + j));
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status gate_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                            int32_t dtype, uint32_t rows, int32_t inner) {
    RLHF_TRY(check_kind(ctx, "gate_bwd", kind, dtype));
    RLHF_TRY(rlhf__ref_check_width(ctx, "gate_bwd", inner));
    const uint64_t n = (uint64_t)inner, size = rlhf_dtype_size(dtype);
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dx, 2 * rows * n, size),
                                         rlhf__ref_range(dy, rows * n, size),
                                         rlhf__ref_range(x, 2 * rows * n, size)};
    RLHF_TRY(rlhf__ref_enter(ctx, "gate_bwd", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++)
        for (uint64_t j = 0; j < n; j++) {
            const uint64_t at = 2 * t * n + j; // dx may alias x
            const double a = rlhf__ref_get(x, dtype, at), b = rlhf__ref_get(x, dtype, at + n);
            const double g = rlhf__ref_get(dy, dtype, t * n + j);
            rlhf__ref_put(dx, dtype, at, g * b * rlhf__ref_act_slope(kind, a));
            rlhf__ref_put(dx, dtype, at + n, g * rlhf__ref_act_value(kind, a));
        }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

void rlhf__ref_fill_act(rlhf_compute *t) {
    t->act = act;
    t->act_bwd = act_bwd;
    t->gate = gate;
    t->gate_bwd = gate_bwd;
}
