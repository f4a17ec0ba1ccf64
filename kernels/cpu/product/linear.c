// linear.c: the linear layer forward and backward on packed weights.
#include "gemm.h"
#include "machine/split.h"
#include "machine/table.h"
#include "product.h"

#include <string.h>

static rlhf_status check_pair(struct rlhf__cpu *cpu, const char *what, const rlhf_weight *w,
                              int32_t out_dtype, int32_t accumulate) {
    RLHF_TRY(rlhf__cpu_weight_packed(cpu, what, w));
    if (out_dtype != RLHF_F32 && out_dtype != RLHF_BF16)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: result of dtype %d, allowed are f32 "
                              "and bf16",
                              what, out_dtype);
    if (accumulate && out_dtype != RLHF_F32)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED, "%s: only an f32 result accumulates", what);
    return RLHF_OK;
}

static struct rlhf__matmul forward_matmul(const rlhf_weight *w, int32_t out_dtype,
                                          int32_t accumulate, int with_bias, uint32_t rows) {
    return (struct rlhf__matmul){.m = rows,
                                 .k = w->k,
                                 .n = w->n,
                                 .in_dtype = w->dtype,
                                 .out_dtype = out_dtype,
                                 .wei_packed = 1,
                                 .quantised = w->quantised,
                                 .accumulate = accumulate != 0,
                                 .bias = with_bias != 0};
}

static rlhf_status linear(void *ctx, rlhf_dev out, int32_t out_dtype, int32_t accumulate,
                          rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_pair(cpu, "linear", w, out_dtype, accumulate));
    const struct rlhf__matmul s = forward_matmul(w, out_dtype, accumulate, bias != NULL, rows);
    return rlhf__product(cpu, &s, rlhf__cpu_mem(x), w->fwd, NULL, rlhf__cpu_f32(bias),
                         rlhf__cpu_mem(out));
}

static rlhf_status linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    const rlhf_compute *t = &cpu->table;
    RLHF_TRY(check_pair(cpu, "linear_add", w, RLHF_F32, 1));
    if (out != add && rlhf__gemm_used(cpu, w->dtype)) {
        const struct rlhf__matmul s = forward_matmul(w, RLHF_F32, 1, bias != NULL, rows);
        return rlhf__gemm_add(cpu, &s, rlhf__cpu_mem(x), w->fwd, rlhf__cpu_f32(bias),
                              rlhf__cpu_f32(add), rlhf__cpu_f32(out));
    }
    if (out != add)
        RLHF_TRY(t->copy(ctx, out, add, (uint64_t)rows * (uint64_t)w->n * sizeof(float)));
    return linear(ctx, out, RLHF_F32, 1, x, w, bias, rows);
}

// Returns the right operand of the backward GEMM: the packing for that GEMM, or with `across` the
// packing for the forward GEMM.
static const void *backward_of(const rlhf_weight *w, int across) {
    return across ? w->fwd : w->bwd;
}

static struct rlhf__matmul backward_matmul(const rlhf_weight *w, int across, int32_t dx_dtype,
                                           int32_t accumulate, uint32_t rows) {
    return (struct rlhf__matmul){.m = rows,
                                 .k = w->n,
                                 .n = w->k,
                                 .in_dtype = w->dtype,
                                 .out_dtype = dx_dtype,
                                 .wei_packed = 1,
                                 .wei_across = across != 0,
                                 .quantised = w->quantised,
                                 .accumulate = accumulate != 0};
}

static rlhf_status linear_dx(void *ctx, rlhf_dev dx, int32_t dx_dtype, int32_t accumulate,
                             rlhf_dev dy, const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_pair(cpu, "linear_dx", w, dx_dtype, accumulate));
    if (!(w->flags & RLHF_WEIGHT_BACKWARD))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "linear_dx: the weight was made without RLHF_WEIGHT_BACKWARD");
    const int across = !rlhf__cpu_keeps_both(cpu, w);
    const struct rlhf__matmul s = backward_matmul(w, across, dx_dtype, accumulate, rows);
    return rlhf__product(cpu, &s, rlhf__cpu_mem(dy), backward_of(w, across), NULL, NULL,
                         rlhf__cpu_mem(dx));
}

#define SUMS_STEP 64 // columns of a block of column_sums() and one_output_dw()

struct sums {
    const struct rlhf__cpu *cpu;
    float *db;
    const char *dy;
    int32_t dtype, n;
    uint32_t rows;
};

static void column_block(const void *job, int64_t b) {
    const struct sums *s = job;
    const int64_t c = b * SUMS_STEP, cols = s->n - c < SUMS_STEP ? s->n - c : SUMS_STEP;
    s->cpu->hot.column_sums(s->db + c, s->dy + (uint64_t)c * rlhf_dtype_size(s->dtype),
                            s->dtype == RLHF_BF16, s->rows, (size_t)cols, (size_t)s->n);
}

// db[n] += column sums of dy[rows, n]. Rows are added in ascending order. The columns are divided
// among the threads, so this order never changes.
static void column_sums(struct rlhf__cpu *cpu, float *db, const char *dy, int32_t dtype,
                        uint32_t rows, int32_t n) {
    rlhf__split_run(cpu, cpu->threads, (n + SUMS_STEP - 1) / SUMS_STEP, column_block,
                    &(const struct sums){cpu, db, dy, dtype, n, rows});
}

struct one_output {
    const struct rlhf__cpu *cpu;
    float *dw;
    const float *x, *dy;
    uint32_t rows;
    int32_t k;
};

// Computes SUMS_STEP elements of dw.
static void one_output_block(const void *job, int64_t b) {
    enum { STEP = SUMS_STEP, CHAIN = RLHF__GEMM_CHAIN };
    const struct one_output *o = job;
    const struct rlhf__cpu *cpu = o->cpu;
    const size_t k = (size_t)o->k, c = (size_t)b * STEP, cols = k - c < STEP ? k - c : STEP;
    const uint32_t rows = o->rows, pass = (uint32_t)rlhf__gemm_pass(rows);
    float sum[STEP];
    for (uint32_t r = 0, n; r < rows; r += n) {
        n = rows - r < CHAIN ? rows - r : CHAIN;
        if (r % pass == 0) memset(sum, 0, sizeof sum);
        cpu->hot.weighted_sums(sum, o->x + r * k + c, o->dy + r, n, cols, k);
        if ((r + n) % pass == 0 || r + n == rows) cpu->hot.add(o->dw + c, sum, 0, cols);
    }
}

// dw f32 [k] += x^T dy, for a weight with one output. This function adds up the rows directly,
// because a GEMM would have to pack x first. Passes and chains are the same as in a GEMM, so the
// bits are the same.
static void one_output_dw(struct rlhf__cpu *cpu, float *dw, const float *x, const float *dy,
                          uint32_t rows, int32_t k) {
    rlhf__split_run(cpu, cpu->threads, (k + SUMS_STEP - 1) / SUMS_STEP, one_output_block,
                    &(const struct one_output){cpu, dw, x, dy, rows, k});
}

static int is_out_in(const rlhf_weight *w) { return (w->flags & RLHF_WEIGHT_OUT_IN) != 0; }

static int sums_directly(const rlhf_weight *w, int goes_on) {
    return w->n == 1 && w->dtype == RLHF_F32 && !goes_on;
}

static struct rlhf__matmul dw_matmul(const rlhf_weight *w, uint32_t rows, int goes_on) {
    return (struct rlhf__matmul){.m = is_out_in(w) ? w->n : w->k,
                                 .k = rows,
                                 .n = is_out_in(w) ? w->k : w->n,
                                 .in_dtype = w->dtype,
                                 .out_dtype = RLHF_F32,
                                 .src_transposed = 1,
                                 .accumulate = 1,
                                 .goes_on = goes_on != 0};
}

rlhf_status rlhf__linear_dw(struct rlhf__cpu *cpu, void *dw, const void *x, const void *dy,
                            const rlhf_weight *w, uint32_t rows, int goes_on) {
    if (rows == 0) return RLHF_OK;
    if (sums_directly(w, goes_on)) {
        one_output_dw(cpu, dw, x, dy, rows, w->k);
        return RLHF_OK;
    }
    const int out_in = is_out_in(w);
    const struct rlhf__matmul s = dw_matmul(w, rows, goes_on);
    return rlhf__product(cpu, &s, out_in ? dy : x, NULL, out_in ? x : dy, NULL, dw);
}

static struct rlhf__matmul blocks_dw_matmul(const rlhf_weight *w, uint32_t rows) {
    return (struct rlhf__matmul){.m = w->n,
                                 .k = rows,
                                 .n = w->k,
                                 .in_dtype = w->dtype,
                                 .out_dtype = RLHF_F32,
                                 .src_transposed = 1};
}

// For a block-structured weight: computes the dense gradient and adds its blocks to dw.
static rlhf_status blocks_dw(struct rlhf__cpu *cpu, rlhf_dev dw, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    const struct rlhf__matmul s = blocks_dw_matmul(w, rows);
    void *dense = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SUM, rlhf__blocks_dense_bytes(w), &dense));
    RLHF_TRY(rlhf__product(cpu, &s, rlhf__cpu_mem(dy), NULL, rlhf__cpu_mem(x), NULL, dense));
    rlhf__blocks_add(cpu, w, rlhf__cpu_f32(dw), dense);
    return RLHF_OK;
}

static rlhf_status linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_weight_dense(cpu, "linear_dw", w));
    if (db) column_sums(cpu, rlhf__cpu_f32(db), rlhf__cpu_mem(dy), w->dtype, rows, w->n);
    if (w->blocks && rows) return blocks_dw(cpu, dw, x, dy, w, rows);
    return rlhf__linear_dw(cpu, rlhf__cpu_mem(dw), rlhf__cpu_mem(x), rlhf__cpu_mem(dy), w, rows, 0);
}

// ---- the sum of two products ----

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

// True if the backward GEMMs of linear_sum read the packings for the forward GEMMs. The two GEMMs
// may run as one, so both right operands have the same form.
static int sum_across(const struct rlhf__cpu *cpu, const rlhf_weight *w, const rlhf_weight *w2) {
    return !rlhf__cpu_keeps_both(cpu, w) || !rlhf__cpu_keeps_both(cpu, w2);
}

// The GEMM with w, which is one of the two weights of linear_sum. `first` is 1 if w is the first
// weight.
static struct rlhf__matmul sum_part(const rlhf_linear_sum *a, const rlhf_weight *w, int across,
                                    int first) {
    const int32_t accumulate = first ? a->accumulate : 1;
    return a->across ? backward_matmul(w, across, RLHF_F32, accumulate, a->rows)
                     : forward_matmul(w, RLHF_F32, accumulate, first && a->bias, a->rows);
}

// True if the panels of two right operands have the same columns, so that their GEMMs can run as
// one. With wei_across, the panels of a quantised operand are converted to regular ones.
static int same_panels(const struct rlhf__matmul *s, const struct rlhf__matmul *o) {
    return !o->quantised.panels && (s->wei_across || !s->quantised.panels || s->quantised.regular);
}

// True if the two GEMMs of linear_sum run as one, tile by tile.
static int is_one_gemm(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                       const struct rlhf__matmul *o) {
    return rlhf__gemm_used(cpu, s->in_dtype) && s->in_dtype == RLHF_BF16 &&
           s->k <= RLHF__GEMM_SUM_K && o->k <= RLHF__GEMM_SUM_K && same_panels(s, o);
}

static uint64_t sum_bytes(const struct rlhf__matmul *s) {
    return (uint64_t)(s->m * s->n) * sizeof(float);
}

static rlhf_status linear_sum(void *ctx, const rlhf_linear_sum *from) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_linear_sum a;
    RLHF_TRY(rlhf__cpu_copy_in(cpu, "linear_sum", &a, sizeof a, from,
                               RLHF_SIZE_TO(rlhf_linear_sum, bias)));
    RLHF_TRY(check_sum(cpu, &a));
    const int across = sum_across(cpu, a.w, a.w2);
    struct rlhf__matmul s = sum_part(&a, a.w, across, 1), o = sum_part(&a, a.w2, across, 0);
    const void *wei = a.across ? backward_of(a.w, across) : a.w->fwd;
    const void *wei2 = a.across ? backward_of(a.w2, across) : a.w2->fwd;
    if (is_one_gemm(cpu, &s, &o)) {
        const struct rlhf__gemm_second second = {rlhf__cpu_mem(a.x2), wei2, o.k};
        s.out_dtype = a.out_dtype;
        return rlhf__gemm_sum(cpu, &s, rlhf__cpu_mem(a.x), wei, rlhf__cpu_f32(a.bias), &second,
                              rlhf__cpu_mem(a.out));
    }
    void *sum = rlhf__cpu_mem(a.out);
    if (a.out_dtype != RLHF_F32)
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SUM, sum_bytes(&s), &sum));
    RLHF_TRY(rlhf__product(cpu, &s, rlhf__cpu_mem(a.x), wei, NULL, rlhf__cpu_f32(a.bias), sum));
    RLHF_TRY(rlhf__product(cpu, &o, rlhf__cpu_mem(a.x2), wei2, NULL, NULL, sum));
    if (a.out_dtype == RLHF_F32) return RLHF_OK;
    return cpu->table.convert(cpu, a.out, RLHF_BF16, rlhf__cpu_dev(sum), RLHF_F32,
                              (uint64_t)(s.m * s.n));
}

// ---- workspaces ----

void rlhf__linear_dx_needs(struct rlhf__cpu *cpu, const rlhf_weight *w, int32_t dx_dtype,
                           int32_t accumulate, uint32_t rows, struct rlhf__cpu_needs *n) {
    const int across = !rlhf__cpu_keeps_both(cpu, w);
    const struct rlhf__matmul s = backward_matmul(w, across, dx_dtype, accumulate, rows);
    rlhf__product_needs(cpu, &s, n);
}

void rlhf__linear_dw_needs(struct rlhf__cpu *cpu, const rlhf_weight *w, uint32_t rows, int goes_on,
                           struct rlhf__cpu_needs *n) {
    const struct rlhf__matmul s = dw_matmul(w, rows, goes_on);
    if (rows && !sums_directly(w, goes_on)) rlhf__product_needs(cpu, &s, n);
}

static void blocks_dw_needs(struct rlhf__cpu *cpu, const rlhf_weight *w, uint32_t rows,
                            struct rlhf__cpu_needs *n) {
    const struct rlhf__matmul s = blocks_dw_matmul(w, rows);
    if (!rows) return;
    rlhf__cpu_need(n, RLHF__WS_SUM, rlhf__blocks_dense_bytes(w));
    rlhf__product_needs(cpu, &s, n);
}

static void sum_needs(struct rlhf__cpu *cpu, const rlhf_call *c, const rlhf_weight *w,
                      struct rlhf__cpu_needs *n) {
    const rlhf_linear_sum *a = c->sum;
    const rlhf_weight w2 = rlhf__weight_shape(cpu, &c->weight2);
    const int across = sum_across(cpu, w, &w2);
    struct rlhf__matmul s = sum_part(a, w, across, 1), o = sum_part(a, &w2, across, 0);
    if (is_one_gemm(cpu, &s, &o)) {
        const struct rlhf__gemm_second second = {.k = o.k};
        s.out_dtype = a->out_dtype;
        rlhf__gemm_needs(cpu, &s, &second, n);
        return;
    }
    if (a->out_dtype != RLHF_F32) rlhf__cpu_need(n, RLHF__WS_SUM, sum_bytes(&s));
    rlhf__product_needs(cpu, &s, n);
    rlhf__product_needs(cpu, &o, n);
}

void rlhf__cpu_needs_linear(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    const rlhf_weight w = rlhf__weight_shape(cpu, &c->weight);
    const int accumulate = (c->flags & RLHF_CALL_ACCUMULATE) != 0;
    const int bias = (c->flags & RLHF_CALL_BIAS) != 0;
    struct rlhf__matmul s;
    switch (c->op) {
    case RLHF_COMPUTE_OP(linear):
        s = forward_matmul(&w, c->dtype, accumulate, bias, c->rows);
        rlhf__product_needs(cpu, &s, n);
        return;
    case RLHF_COMPUTE_OP(linear_add):
        s = forward_matmul(&w, RLHF_F32, 1, bias, c->rows);
        rlhf__product_needs(cpu, &s, n);
        return;
    case RLHF_COMPUTE_OP(linear_dx):
        rlhf__linear_dx_needs(cpu, &w, c->dtype, accumulate, c->rows, n);
        return;
    case RLHF_COMPUTE_OP(linear_dw):
        if (c->weight.rank)
            blocks_dw_needs(cpu, &w, c->rows, n);
        else
            rlhf__linear_dw_needs(cpu, &w, c->rows, 0, n);
        return;
    case RLHF_COMPUTE_OP(linear_sum):
        if (c->sum) sum_needs(cpu, c, &w, n);
        return;
    default:
        return;
    }
}

void rlhf__cpu_fill_linear(rlhf_compute *t) {
    t->linear = linear;
    t->linear_add = linear_add;
    t->linear_dx = linear_dx;
    t->linear_dw = linear_dw;
    t->linear_sum = linear_sum;
}
