// linear.c: matrix products (GEMM) with a weight, forward and both derivatives, one row at a time.
#include "number.h"
#include "ops.h"
#include "weight.h"
#include <stdlib.h>
#include <string.h>

static rlhf_status check_out(struct rlhf__ref *r, const char *op, int32_t dtype, int32_t add) {
    RLHF_TRY(rlhf__ref_check_dtype(r, op, dtype));
    if (add && dtype != RLHF_F32)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "accumulate needs an f32 output");
    return RLHF_OK;
}

static rlhf_status linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                          rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    RLHF_TRY(rlhf__ref_check_weight(ctx, "linear", w, 0));
    RLHF_TRY(check_out(ctx, "linear", out_dtype, accumulate));
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, rows * n, rlhf_dtype_size(out_dtype)),
                                         rlhf__ref_range(x, rows * k, rlhf_dtype_size(w->dtype)),
                                         rlhf__ref_optional(bias, n, sizeof(float))};
    double *acc;
    RLHF_TRY(rlhf__ref_scratch(ctx, n, sizeof *acc, &acc));
    rlhf_status st = rlhf__ref_enter(ctx, "linear", uses, RLHF__REF_COUNT(uses));
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++) {
        for (uint64_t j = 0; j < n; j++)
            acc[j] = bias ? (double)rlhf__ref_f32(bias)[j] : 0.0;
        for (uint64_t i = 0; i < k; i++) {
            const double xi = rlhf__ref_get(x, w->dtype, t * k + i);
            for (uint64_t j = 0; j < n; j++)
                acc[j] += xi * (double)w->w[i * n + j];
        }
        for (uint64_t j = 0; j < n; j++) {
            double old = accumulate ? rlhf__ref_get(out, RLHF_F32, t * n + j) : 0.0;
            rlhf__ref_put(out, out_dtype, t * n + j, old + acc[j]);
        }
    }
    free(acc);
    return rlhf__ref_leave(ctx, st);
}

static rlhf_status linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    RLHF_TRY(rlhf__ref_check_weight(ctx, "linear_add", w, 0));
    const uint64_t n = rows * (uint64_t)w->n;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, n, sizeof(float)),
                                         rlhf__ref_range(add, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "linear_add", uses, RLHF__REF_COUNT(uses)));
    if (out != add) memcpy(rlhf__ref_mem(out), rlhf__ref_mem(add), n * sizeof(float));
    RLHF_TRY(rlhf__ref_leave(ctx, RLHF_OK));
    return linear(ctx, out, RLHF_F32, 1, x, w, bias, rows);
}

static rlhf_status linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                             rlhf_dev dy, const rlhf_weight *w, uint32_t rows) {
    RLHF_TRY(rlhf__ref_check_weight(ctx, "linear_dx", w, RLHF_WEIGHT_BACKWARD));
    RLHF_TRY(check_out(ctx, "linear_dx", dx_dtype, accumulate));
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dx, rows * k, rlhf_dtype_size(dx_dtype)),
                                         rlhf__ref_range(dy, rows * n, rlhf_dtype_size(w->dtype))};
    RLHF_TRY(rlhf__ref_enter(ctx, "linear_dx", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < rows; t++) {
        for (uint64_t i = 0; i < k; i++) {
            double acc = accumulate ? rlhf__ref_get(dx, RLHF_F32, t * k + i) : 0.0;
            for (uint64_t j = 0; j < n; j++)
                acc += rlhf__ref_get(dy, w->dtype, t * n + j) * (double)w->w[i * n + j];
            rlhf__ref_put(dx, dx_dtype, t * k + i, acc);
        }
    }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

// acc[n] = the sum over rows of x[:, i] * dy[:, :]. If x is NULL, x[:, i] is replaced with ones.
static void column_sums(double *acc, rlhf_dev x, rlhf_dev dy, const rlhf_weight *w, uint64_t i,
                        uint64_t rows) {
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    memset(acc, 0, n * sizeof *acc);
    for (uint64_t t = 0; t < rows; t++) {
        const double xi = x ? rlhf__ref_get(x, w->dtype, t * k + i) : 1.0;
        for (uint64_t j = 0; j < n; j++)
            acc[j] += xi * rlhf__ref_get(dy, w->dtype, t * n + j);
    }
}

// Adds acc, which is row i of the gradient of the dense weight [k, n], to the gradient g of a
// block-structured weight. Skips the entries outside of the blocks.
static void add_in_blocks(float *g, const double *acc, const rlhf_weight *w, uint64_t i) {
    for (int32_t j = 0; j < w->n; j++) {
        const struct rlhf__ref_block *b = &w->block[j];
        const int64_t c = (int64_t)i - b->first;
        if (b->source < 0 || c < 0 || c >= w->rank) continue;
        float *to = g + (uint64_t)b->source * (uint64_t)w->rank + (uint64_t)c;
        *to = (float)((double)*to + (double)w->scale * acc[j]);
    }
}

static rlhf_status linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    RLHF_TRY(rlhf__ref_check_weight(ctx, "linear_dw", w, 0));
    RLHF_TRY(rlhf__ref_check_dense(ctx, "linear_dw", w));
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    const uint64_t count = w->block ? w->source_rows * (uint64_t)w->rank : k * n;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(dw, count, sizeof(float)),
                                         rlhf__ref_optional(db, n, sizeof(float)),
                                         rlhf__ref_range(x, rows * k, rlhf_dtype_size(w->dtype)),
                                         rlhf__ref_range(dy, rows * n, rlhf_dtype_size(w->dtype))};
    double *acc;
    RLHF_TRY(rlhf__ref_scratch(ctx, n, sizeof *acc, &acc));
    rlhf_status st = rlhf__ref_enter(ctx, "linear_dw", uses, RLHF__REF_COUNT(uses));
    float *g = rlhf__ref_f32(dw);
    for (uint64_t i = 0; st == RLHF_OK && i < k; i++) {
        column_sums(acc, x, dy, w, i, rows);
        if (w->block) add_in_blocks(g, acc, w, i);
        for (uint64_t j = 0; !w->block && j < n; j++) {
            uint64_t at = w->flags & RLHF_WEIGHT_OUT_IN ? j * k + i : i * n + j;
            g[at] = (float)((double)g[at] + acc[j]);
        }
    }
    if (st == RLHF_OK && db) {
        column_sums(acc, NULL, dy, w, 0, rows);
        for (uint64_t j = 0; j < n; j++)
            rlhf__ref_f32(db)[j] = (float)((double)rlhf__ref_f32(db)[j] + acc[j]);
    }
    free(acc);
    return rlhf__ref_leave(ctx, st);
}

// ---- the sum of two products ----

// Returns `sum` plus element (t, j) of the product x w or, if a->across is set, x w^T.
static double row_product(double sum, const rlhf_linear_sum *a, rlhf_dev x, const rlhf_weight *w,
                          uint64_t t, uint64_t j) {
    const uint64_t n = (uint64_t)w->n, depth = (uint64_t)(a->across ? w->n : w->k);
    for (uint64_t i = 0; i < depth; i++)
        sum += rlhf__ref_get(x, w->dtype, t * depth + i) *
               (double)w->w[a->across ? j * n + i : i * n + j];
    return sum;
}

static rlhf_status check_sum(struct rlhf__ref *r, const rlhf_linear_sum *a) {
    const uint32_t flags = a->across ? RLHF_WEIGHT_BACKWARD : 0;
    RLHF_TRY(rlhf__ref_check_weight(r, "linear_sum", a->w, flags));
    RLHF_TRY(rlhf__ref_check_weight(r, "linear_sum", a->w2, flags));
    RLHF_TRY(check_out(r, "linear_sum", a->out_dtype, a->accumulate));
    if (a->w->dtype != a->w2->dtype || (a->across ? a->w->k != a->w2->k : a->w->n != a->w2->n))
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "weights of %d x %d and %d x %d, which differ in their results or in "
                              "dtype",
                              a->w->k, a->w->n, a->w2->k, a->w2->n);
    return RLHF_OK;
}

static rlhf_status linear_sum(void *ctx, const rlhf_linear_sum *from) {
    rlhf_linear_sum a;
    RLHF_TRY(rlhf__ref_copy_in(ctx, "linear_sum", &a, sizeof a, from,
                               RLHF_SIZE_TO(rlhf_linear_sum, bias)));
    RLHF_TRY(check_sum(ctx, &a));
    const rlhf_weight *w = a.w, *o = a.w2;
    const uint64_t n = (uint64_t)(a.across ? w->k : w->n), in = rlhf_dtype_size(w->dtype);
    const struct rlhf__ref_use uses[] = {
        rlhf__ref_range(a.out, a.rows * n, rlhf_dtype_size(a.out_dtype)),
        rlhf__ref_range(a.x, a.rows * (uint64_t)(a.across ? w->n : w->k), in),
        rlhf__ref_range(a.x2, a.rows * (uint64_t)(a.across ? o->n : o->k), in),
        rlhf__ref_optional(a.bias, n, sizeof(float))};
    RLHF_TRY(rlhf__ref_enter(ctx, "linear_sum", uses, RLHF__REF_COUNT(uses)));
    for (uint64_t t = 0; t < a.rows; t++)
        for (uint64_t j = 0; j < n; j++) {
            const double old = a.accumulate ? rlhf__ref_get(a.out, RLHF_F32, t * n + j) : 0.0;
            const double bias = a.bias ? (double)rlhf__ref_f32(a.bias)[j] : 0.0;
            // linear adds the old value last, but linear_dx starts with it. This code keeps both
            // orders.
            const double one = a.across ? row_product(old, &a, a.x, w, t, j)
                                        : old + row_product(bias, &a, a.x, w, t, j);
            const double kept = (double)(float)one;
            rlhf__ref_put(a.out, a.out_dtype, t * n + j,
                          a.across ? row_product(kept, &a, a.x2, o, t, j)
                                   : kept + row_product(0.0, &a, a.x2, o, t, j));
        }
    return rlhf__ref_leave(ctx, RLHF_OK);
}

void rlhf__ref_fill_linear(rlhf_compute *t) {
    t->linear = linear;
    t->linear_add = linear_add;
    t->linear_dx = linear_dx;
    t->linear_dw = linear_dw;
    t->linear_sum = linear_sum;
}
