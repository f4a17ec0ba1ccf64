// linear.c: the linear layer forward and backward on packed weights.
#include "gemm.h"
#include "product.h"
#include "table.h"

#include <string.h>

static rlhf_status check_pair(struct rlhf__cpu *cpu, const char *what, const rlhf_weight *w,
                              int32_t out_dtype, int32_t accumulate) {
    if (!w->packed)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: weight_pack was never called", what);
    if (out_dtype != RLHF_F32 && out_dtype != RLHF_BF16)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: result of dtype %d, allowed are f32 "
                              "and bf16",
                              what, out_dtype);
    if (accumulate && out_dtype != RLHF_F32)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED, "%s: only an f32 result accumulates", what);
    return RLHF_OK;
}

static rlhf_status linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                          rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_pair(cpu, "linear", w, out_dtype, accumulate));
    const struct rlhf__matmul s = {.k = w->k,
                                   .n = w->n,
                                   .in_dtype = w->dtype,
                                   .out_dtype = out_dtype,
                                   .wei_packed = 1,
                                   .accumulate = accumulate != 0,
                                   .bias = bias != NULL};
    return rlhf__product_rows(cpu, &s, rows, rlhf__cpu_mem(x), &w->fwd, rlhf__cpu_f32(bias),
                              rlhf__cpu_mem(out));
}

static rlhf_status linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    const rlhf_compute *t = &cpu->table;
    RLHF_TRY(check_pair(cpu, "linear_add", w, RLHF_F32, 1));
    if (out != add && rlhf__gemm_used(cpu, w->dtype)) {
        const struct rlhf__matmul s = {.m = rows,
                                       .k = w->k,
                                       .n = w->n,
                                       .in_dtype = w->dtype,
                                       .out_dtype = RLHF_F32,
                                       .wei_packed = 1,
                                       .accumulate = 1,
                                       .bias = bias != NULL};
        return rlhf__gemm_add(cpu, &s, rlhf__cpu_mem(x), w->fwd.ptr, rlhf__cpu_f32(bias),
                              rlhf__cpu_f32(add), rlhf__cpu_f32(out));
    }
    if (out != add)
        RLHF_TRY(t->copy(ctx, out, add, (uint64_t)rows * (uint64_t)w->n * sizeof(float)));
    return linear(ctx, out, RLHF_F32, 1, x, w, bias, rows);
}

// The right operand of the backward GEMM: the weight packed the other way, or the forward packing
// read across.
static const struct rlhf__packed *backward_of(const rlhf_weight *w) {
    return w->bwd.ptr ? &w->bwd : &w->fwd;
}

static rlhf_status linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                             rlhf_dev dy, const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_pair(cpu, "linear_dx", w, dx_dtype, accumulate));
    if (!(w->flags & RLHF_WEIGHT_BACKWARD))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "linear_dx: the weight was made without RLHF_WEIGHT_BACKWARD");
    const struct rlhf__matmul s = {.k = w->n,
                                   .n = w->k,
                                   .in_dtype = w->dtype,
                                   .out_dtype = dx_dtype,
                                   .wei_packed = 1,
                                   .wei_across = !w->bwd.ptr,
                                   .accumulate = accumulate != 0};
    return rlhf__product_rows(cpu, &s, rows, rlhf__cpu_mem(dy), backward_of(w), NULL,
                              rlhf__cpu_mem(dx));
}

// db[n] += column sums of dy[rows, n]. Rows are added in ascending order and threads split the
// columns, so the order never changes.
static void column_sums(struct rlhf__cpu *cpu, float *db, const char *dy, int32_t dtype,
                        uint32_t rows, int32_t n) {
    enum { STEP = 64 };
    int32_t blocks = (n + STEP - 1) / STEP;
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (int32_t b = 0; b < blocks; b++) {
        int32_t c = b * STEP, cols = n - c < STEP ? n - c : STEP;
        cpu->hot.column_sums(db + c, dy + (uint64_t)c * rlhf_dtype_size(dtype), dtype == RLHF_BF16,
                             rows, (size_t)cols, (size_t)n);
    }
}

// dw f32 [k] += x^T dy of a weight with one output. Sums over rows directly, where a GEMM would
// first pack x. Passes and chains are split as in a GEMM, so the bits are the same.
static void one_output_dw(struct rlhf__cpu *cpu, float *dw, const float *x, const float *dy,
                          uint32_t rows, int32_t k) {
    enum { STEP = 64, CHAIN = RLHF__GEMM_ROWS_STEP };
    const uint32_t pass = (uint32_t)rlhf__gemm_pass(rows);
    int32_t blocks = (k + STEP - 1) / STEP;
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (int32_t b = 0; b < blocks; b++) {
        const int32_t c = b * STEP, cols = k - c < STEP ? k - c : STEP;
        float sum[STEP];
        for (uint32_t r = 0, n; r < rows; r += n) {
            n = rows - r < CHAIN ? rows - r : CHAIN;
            if (r % pass == 0) memset(sum, 0, sizeof sum);
            cpu->hot.weighted_sums(sum, x + (size_t)r * (size_t)k + c, dy + r, n, (size_t)cols,
                                   (size_t)k);
            if ((r + n) % pass == 0 || r + n == rows) cpu->hot.add(dw + c, sum, 0, (size_t)cols);
        }
    }
}

rlhf_status rlhf__linear_dw(struct rlhf__cpu *cpu, void *dw, const void *x, const void *dy,
                            const rlhf_weight *w, uint32_t rows, int goes_on) {
    if (rows == 0) return RLHF_OK;
    if (w->n == 1 && w->dtype == RLHF_F32 && !goes_on) {
        one_output_dw(cpu, dw, x, dy, rows, w->k);
        return RLHF_OK;
    }
    int out_in = (w->flags & RLHF_WEIGHT_OUT_IN) != 0;
    const struct rlhf__matmul s = {.m = out_in ? w->n : w->k,
                                   .k = rows,
                                   .n = out_in ? w->k : w->n,
                                   .in_dtype = w->dtype,
                                   .out_dtype = RLHF_F32,
                                   .src_transposed = 1,
                                   .accumulate = 1,
                                   .goes_on = goes_on != 0};
    return rlhf__product(cpu, &s, out_in ? dy : x, NULL, out_in ? x : dy, NULL, dw);
}

// For a block-structured weight: computes the dense gradient and adds its blocks to dw.
static rlhf_status blocks_dw(struct rlhf__cpu *cpu, rlhf_dev dw, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    const struct rlhf__matmul s = {.m = w->n,
                                   .k = rows,
                                   .n = w->k,
                                   .in_dtype = w->dtype,
                                   .out_dtype = RLHF_F32,
                                   .src_transposed = 1};
    void *dense = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SUM, (uint64_t)(s.m * s.n) * sizeof(float), &dense));
    RLHF_TRY(rlhf__product(cpu, &s, rlhf__cpu_mem(dy), NULL, rlhf__cpu_mem(x), NULL, dense));
    rlhf__blocks_add(cpu, w, rlhf__cpu_f32(dw), dense);
    return RLHF_OK;
}

static rlhf_status linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    if (db) column_sums(cpu, rlhf__cpu_f32(db), rlhf__cpu_mem(dy), w->dtype, rows, w->n);
    if (w->blocks && rows) return blocks_dw(cpu, dw, x, dy, w, rows);
    return rlhf__linear_dw(cpu, rlhf__cpu_mem(dw), rlhf__cpu_mem(x), rlhf__cpu_mem(dy), w, rows, 0);
}

// ---- the sum of two ----

static rlhf_status check_sum(struct rlhf__cpu *cpu, const rlhf_linear_sum *a) {
    const rlhf_weight *w = a->w, *o = a->w2;
    RLHF_TRY(check_pair(cpu, "linear_sum", w, a->out_dtype, a->accumulate));
    RLHF_TRY(check_pair(cpu, "linear_sum", o, a->out_dtype, a->accumulate));
    if (w->dtype != o->dtype || (a->across ? w->k != o->k : w->n != o->n))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "linear_sum: weights of %d x %d and %d x %d, which differ in their "
                              "results or in dtype",
                              w->k, w->n, o->k, o->n);
    if (a->across && !(w->flags & o->flags & RLHF_WEIGHT_BACKWARD))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "linear_sum: a weight was made without RLHF_WEIGHT_BACKWARD");
    return RLHF_OK;
}

static struct rlhf__matmul sum_part(const rlhf_linear_sum *a, const rlhf_weight *w) {
    return (struct rlhf__matmul){.m = a->rows,
                                 .k = a->across ? w->n : w->k,
                                 .n = a->across ? w->k : w->n,
                                 .in_dtype = w->dtype,
                                 .out_dtype = RLHF_F32,
                                 .wei_packed = 1,
                                 .wei_across = a->across && !w->bwd.ptr,
                                 .accumulate = 1};
}

static rlhf_status linear_sum(void *ctx, const rlhf_linear_sum *from) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_linear_sum a;
    RLHF_TRY(rlhf__cpu_copy_in(cpu, "linear_sum", &a, sizeof a, from,
                               RLHF_SIZE_TO(rlhf_linear_sum, bias)));
    RLHF_TRY(check_sum(cpu, &a));
    struct rlhf__matmul s = sum_part(&a, a.w), o = sum_part(&a, a.w2);
    const struct rlhf__packed *wei = a.across ? backward_of(a.w) : &a.w->fwd;
    const struct rlhf__packed *wei2 = a.across ? backward_of(a.w2) : &a.w2->fwd;
    s.accumulate = a.accumulate != 0;
    s.bias = a.bias != NULL;
    if (rlhf__gemm_used(cpu, s.in_dtype) && s.in_dtype == RLHF_BF16 && s.k <= RLHF__GEMM_SUM_K &&
        o.k <= RLHF__GEMM_SUM_K) {
        const struct rlhf__gemm_second second = {rlhf__cpu_mem(a.x2), wei2->ptr, o.k};
        s.out_dtype = a.out_dtype;
        return rlhf__gemm_sum(cpu, &s, rlhf__cpu_mem(a.x), wei->ptr, rlhf__cpu_f32(a.bias), &second,
                              rlhf__cpu_mem(a.out));
    }
    const uint64_t n = a.rows * (uint64_t)s.n;
    void *sum = rlhf__cpu_mem(a.out);
    if (a.out_dtype != RLHF_F32)
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SUM, n * sizeof(float), &sum));
    RLHF_TRY(
        rlhf__product_rows(cpu, &s, a.rows, rlhf__cpu_mem(a.x), wei, rlhf__cpu_f32(a.bias), sum));
    RLHF_TRY(rlhf__product_rows(cpu, &o, a.rows, rlhf__cpu_mem(a.x2), wei2, NULL, sum));
    if (a.out_dtype == RLHF_F32) return RLHF_OK;
    return cpu->table.convert(cpu, a.out, RLHF_BF16, rlhf__cpu_dev(sum), RLHF_F32, n);
}

void rlhf__cpu_fill_linear(rlhf_compute *t) {
    t->linear = linear;
    t->linear_add = linear_add;
    t->linear_dx = linear_dx;
    t->linear_dw = linear_dw;
    t->linear_sum = linear_sum;
}
