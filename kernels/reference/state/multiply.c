// multiply.c: the product of two matrices, element by element, and its derivative.
#include "act.h"
#include "number.h"
#include "ops.h"

// Copies the caller's struct to *c. The layout of the gate is checked only if `gated` is set.
static rlhf_status read_columns(struct rlhf__ref *r, const char *op, rlhf_columns *c,
                                const rlhf_columns *from, int gated) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, c, sizeof *c, from, RLHF_SIZE_TO(rlhf_columns, out_step)));
    RLHF_TRY(rlhf__ref_check_dtype(r, op, c->dtype));
    RLHF_TRY(rlhf__ref_check_act(r, op, c->act, 1));
    if (c->blocks < 1 || c->width < 1)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "%d blocks of %d columns, must be at least 1",
                              c->blocks, c->width);
    const int64_t strides[] = {c->x_stride, c->out_stride, c->gate_stride};
    const int64_t steps[] = {c->x_step, c->out_step, c->gate_step};
    for (int i = 0; i < 2 + !!gated; i++) {
        if ((c->blocks == 1 || steps[i] >= c->width) &&
            strides[i] >= (c->blocks - 1) * steps[i] + c->width)
            continue;
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "%d blocks of %d columns do not fit step %lld and stride %lld",
                              c->blocks, c->width, (long long)steps[i], (long long)strides[i]);
    }
    return RLHF_OK;
}

// The range of a matrix of `rows` rows.
static struct rlhf__ref_use range(const rlhf_columns *c, rlhf_dev p, uint32_t rows, int64_t stride,
                                  int64_t step) {
    const int64_t row = (c->blocks - 1) * step + c->width;
    const uint64_t n = rows ? (rows - 1ull) * (uint64_t)stride + (uint64_t)row : 0;
    return rlhf__ref_range(p, n, rlhf_dtype_size(c->dtype));
}

// f(gate) of an element, and its slope through *slope.
static double factor(const rlhf_columns *c, double z, double *slope) {
    *slope = c->act ? rlhf__ref_act_slope(c->act, z) : 1.0;
    return c->act ? rlhf__ref_act_value(c->act, z) : z;
}

// The index of element i of row t: block i / width, column i % width.
static uint64_t index_of(const rlhf_columns *c, uint64_t t, uint64_t i, int64_t stride,
                         int64_t step) {
    const uint64_t w = (uint64_t)c->width;
    return t * (uint64_t)stride + i / w * (uint64_t)step + i % w;
}

static rlhf_status multiply(void *ctx, const rlhf_columns *from, rlhf_dev out, rlhf_dev x,
                            rlhf_dev gate, uint32_t rows) {
    rlhf_columns own;
    const rlhf_columns *c = &own;
    RLHF_TRY(read_columns(ctx, "multiply", &own, from, gate != NULL));
    struct rlhf__ref_use uses[] = {range(c, out, rows, c->out_stride, c->out_step),
                                   range(c, x, rows, c->x_stride, c->x_step),
                                   range(c, gate, rows, c->gate_stride, c->gate_step)};
    if (!gate) uses[2].bytes = 0;
    RLHF_TRY(rlhf__ref_enter(ctx, "multiply", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++)
        for (uint64_t i = 0; i < (uint64_t)c->blocks * (uint64_t)c->width; i++) {
            double slope, y = rlhf__ref_get(x, c->dtype, index_of(c, t, i, c->x_stride, c->x_step));
            if (gate)
                y *= factor(
                    c,
                    rlhf__ref_get(gate, c->dtype, index_of(c, t, i, c->gate_stride, c->gate_step)),
                    &slope);
            rlhf__ref_put(out, c->dtype, index_of(c, t, i, c->out_stride, c->out_step), y);
        }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

static rlhf_status multiply_bwd(void *ctx, const rlhf_columns *from, rlhf_dev dx, rlhf_dev dgate,
                                rlhf_dev dout, rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    rlhf_columns own;
    const rlhf_columns *c = &own;
    RLHF_TRY(read_columns(ctx, "multiply_bwd", &own, from, 1));
    const struct rlhf__ref_use uses[] = {range(c, dx, rows, c->x_stride, c->x_step),
                                         range(c, dgate, rows, c->gate_stride, c->gate_step),
                                         range(c, dout, rows, c->out_stride, c->out_step),
                                         range(c, x, rows, c->x_stride, c->x_step),
                                         range(c, gate, rows, c->gate_stride, c->gate_step)};
    RLHF_TRY(rlhf__ref_enter(ctx, "multiply_bwd", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++)
        for (uint64_t i = 0; i < (uint64_t)c->blocks * (uint64_t)c->width; i++) {
            const uint64_t at = index_of(c, t, i, c->x_stride, c->x_step);
            const uint64_t gate_at = index_of(c, t, i, c->gate_stride, c->gate_step);
            const double d =
                rlhf__ref_get(dout, c->dtype, index_of(c, t, i, c->out_stride, c->out_step));
            double slope, f = factor(c, rlhf__ref_get(gate, c->dtype, gate_at), &slope);
            const double value = rlhf__ref_get(x, c->dtype, at);
            rlhf__ref_put(dx, c->dtype, at, d * f);
            rlhf__ref_put(dgate, c->dtype, gate_at, d * value * slope);
        }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

rlhf_status rlhf__ref_supports_multiply(struct rlhf__ref *r, const char *op,
                                        const rlhf_columns *from) {
    rlhf_columns c;
    return read_columns(r, op, &c, from, from->gate_stride != 0);
}

void rlhf__ref_fill_multiply(rlhf_compute *t) {
    t->multiply = multiply;
    t->multiply_bwd = multiply_bwd;
}
