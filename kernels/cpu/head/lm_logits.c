// lm_logits.c: see lm_logits.h.
#include "lm_logits.h"

#include "product/gemm.h"

#include <math.h>
#include <rlhf/exact.h>

#define LM_BUDGET ((uint64_t)384 << 20)
#define LM_LINE   ((size_t)32) // elements in two cache lines, which are one panel of the GEMM
#define LM_STEP   32u // step of the tiles' sums in bf16: chains of d_weight are cut at its multiples

rlhf_status rlhf__lm_dist_read(struct rlhf__cpu *cpu, const char *op, rlhf_dist *d,
                               const rlhf_dist *from) {
    if (!from) return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: the distribution is NULL", op);
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, d, sizeof *d, from, RLHF_SIZE_TO(rlhf_dist, top_k)));
    if (!d->greedy && !(d->inv_temperature > 0.0 && isfinite(d->inv_temperature)))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: inv_temperature is %g, must be above 0", op,
                              d->inv_temperature);
    if (!(d->top_p > 0.0 && d->top_p <= 1.0))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: top_p is %g, must be in (0, 1]", op,
                              d->top_p);
    if (!(d->min_p >= 0.0 && d->min_p <= 1.0))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: min_p is %g, must be in [0, 1]", op,
                              d->min_p);
    if (d->top_k < 0)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: top_k is %d, must not be negative", op,
                              d->top_k);
    return RLHF_OK;
}

rlhf_status rlhf__lm_weight_check(struct rlhf__cpu *cpu, const char *op, const rlhf_weight *w,
                                  int32_t d, int32_t vocab, int32_t dtype) {
    if (!w || !w->packed)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: the weight is missing or not packed", op);
    if (w->k != d || w->n != vocab || w->dtype != dtype)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: the weight is %d x %d of dtype %d, the call says %d x %d of "
                              "dtype %d",
                              op, w->k, w->n, w->dtype, d, vocab, dtype);
    return RLHF_OK;
}

rlhf_status rlhf__lm_map_check(struct rlhf__cpu *cpu, const char *op, double scale, double cap) {
    if (!(scale >= 0.0 && isfinite(scale)))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: the logit scale is %g, must be above 0", op,
                              scale);
    if (!(cap >= 0.0 && isfinite(cap)))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: the softcap is %g, must not be negative",
                              op, cap);
    return RLHF_OK;
}

int rlhf__lm_dist_cuts(const rlhf_dist *d, int32_t vocab) {
    return d->top_p < 1.0 || d->min_p > 0.0 || (d->top_k > 0 && d->top_k < vocab);
}

void rlhf__lm_truncate(const struct rlhf__cpu *cpu, float *z, size_t n, float scale,
                       const rlhf_dist *d, float *work) {
    if (d->top_p < 1.0 || d->top_k > 0)
        cpu->hot.head_truncate(z, n, scale, d->top_k, d->top_p, work);
    if (d->min_p <= 0.0) return;
    const double least = rlhf_log(d->min_p);
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!(z[i] <= INFINITY)) return; // with a NaN, the log-probs are NaN
        max = z[i] > max ? z[i] : max;
    }
    for (size_t i = 0; i < n; i++)
        if (((double)z[i] - (double)max) * (double)scale < least) z[i] = -INFINITY;
}

// Returns the workspace budget of the context, or the default if none is set. The host's default
// microbatch is small enough that its logits fit in the default, even if the vocabulary is large.
static uint64_t budget_of(const struct rlhf__cpu *cpu) {
    return cpu->workspace_bytes ? cpu->workspace_bytes : LM_BUDGET;
}

uint32_t rlhf__lm_block_rows(const struct rlhf__cpu *cpu, const rlhf_weight *w, uint32_t rows,
                             int with_ref) {
    const uint64_t row = (uint64_t)w->n * (with_ref ? 2 : 1) * sizeof(float);
    const uint64_t fit = budget_of(cpu) / row;
    const uint64_t least = w->exec_dtype == RLHF_F32 ? RLHF__GEMM_CHAIN : LM_STEP;
    const uint64_t step = RLHF__GEMM_CHAIN; // a multiple of LM_STEP
    if (fit >= rows) return rows;
    const uint64_t part = fit < step ? least : fit - fit % step;
    return part < rows ? (uint32_t)part : rows;
}

// The row stride of logits. In bf16, each row starts at the beginning of a cache line. Otherwise
// panels would share lines, and the stores of a bf16 GEMM would stall. At level amx, for GPT-2's
// vocabulary, which has an odd size, this reduces the time for 1,008 rows from 70 to 42 ms. In f32,
// the stride is the vocabulary, because f32 derivatives overwrite the logits row by row.
static size_t stride_of(const struct rlhf__cpu *cpu, int32_t vocab, int32_t dtype) {
    const size_t n = (size_t)vocab;
    return dtype == RLHF_BF16 && rlhf__gemm_used(cpu, dtype) ? (n + LM_LINE - 1) / LM_LINE * LM_LINE
                                                             : n;
}

// The size in bytes of a block's logits, and of its statistics.
static uint64_t logits_bytes(const struct rlhf__cpu *cpu, const rlhf_weight *w, uint32_t rows) {
    return rows * stride_of(cpu, w->n, w->dtype) * sizeof(float);
}

static uint64_t stat_bytes(uint32_t rows) { return rows * sizeof(struct rlhf__head_stat); }

static uint64_t keep_bytes(const struct rlhf__cpu *cpu, int32_t vocab) {
    return (uint64_t)cpu->threads * (uint64_t)vocab * sizeof(float);
}

rlhf_status rlhf__lm_block_place(struct rlhf__cpu *cpu, struct rlhf__lm_block *b) {
    void *p = NULL;
    b->stride = stride_of(cpu, b->vocab, b->weight->dtype);
    const uint64_t bytes = logits_bytes(cpu, b->weight, b->rows);
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_LOGITS, bytes, &p));
    b->logits = p;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_ROWS, stat_bytes(b->rows), &p));
    b->stat = p;
    b->ref_logits = NULL;
    if (!b->ref_weight) return RLHF_OK;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_REF, bytes, &p));
    b->ref_logits = p;
    return RLHF_OK;
}

static struct rlhf__matmul logits_matmul(const rlhf_weight *w, uint32_t rows, size_t stride) {
    return (struct rlhf__matmul){.m = rows,
                                 .k = w->k,
                                 .n = w->n,
                                 .in_dtype = w->dtype,
                                 .out_dtype = RLHF_F32,
                                 .wei_packed = 1,
                                 .quantised = w->quantised,
                                 .ldc = (int64_t)stride};
}

static rlhf_status logits(struct rlhf__cpu *cpu, float *out, const char *hidden,
                          const rlhf_weight *w, uint32_t rows, size_t stride) {
    const struct rlhf__matmul s = logits_matmul(w, rows, stride);
    return rlhf__product(cpu, &s, hidden, w->fwd, NULL, NULL, out);
}

void rlhf__lm_block_needs(struct rlhf__cpu *cpu, const rlhf_weight *w, const rlhf_weight *ref,
                          uint32_t rows, int cuts, struct rlhf__cpu_needs *n) {
    const size_t stride = stride_of(cpu, w->n, w->dtype);
    const struct rlhf__matmul s = logits_matmul(w, rows, stride);
    rlhf__cpu_need(n, RLHF__WS_LOGITS, logits_bytes(cpu, w, rows));
    rlhf__cpu_need(n, RLHF__WS_ROWS, stat_bytes(rows));
    if (ref) rlhf__cpu_need(n, RLHF__WS_REF, logits_bytes(cpu, w, rows));
    if (cuts) rlhf__cpu_need(n, RLHF__WS_KEEP, keep_bytes(cpu, w->n));
    rlhf__product_needs(cpu, &s, n);
    if (!ref) return;
    const struct rlhf__matmul of_ref = logits_matmul(ref, rows, stride);
    rlhf__product_needs(cpu, &of_ref, n);
}

rlhf_status rlhf__lm_block_logits(struct rlhf__cpu *cpu, struct rlhf__lm_block *b) {
    RLHF_TRY(logits(cpu, b->logits, b->hidden, b->weight, b->rows, b->stride));
    if (!b->ref_weight) return RLHF_OK;
    return logits(cpu, b->ref_logits, b->ref_hidden, b->ref_weight, b->rows, b->stride);
}

static void map_row(const struct rlhf__cpu *cpu, float *z, size_t n, struct rlhf__head_map m) {
    if (m.scale != 1.0f || m.cap > 0.0f) cpu->hot.head_map(z, n, m);
}

void rlhf__lm_row_map(const struct rlhf__cpu *cpu, const struct rlhf__lm_block *b, uint32_t row) {
    const size_t n = (size_t)b->vocab;
    map_row(cpu, b->logits + row * b->stride, n, b->map);
    if (b->ref_weight) map_row(cpu, b->ref_logits + row * b->stride, n, b->ref_map);
}

void rlhf__lm_support_store(uint32_t *bits, const float *z, size_t n) {
    for (size_t i = 0; i < n; i += 32) {
        const size_t count = n - i < 32 ? n - i : 32;
        uint32_t word = 0;
        for (size_t j = 0; j < count; j++)
            word |= (uint32_t)(z[i + j] > -INFINITY) << j;
        bits[i / 32] = word;
    }
}

// Sets the logits outside of the support to -inf. Words of the bitmap that are all 0 or all 1 are
// common, so they are handled separately.
static void support_apply(float *z, const uint32_t *bits, size_t n) {
    for (size_t i = 0; i < n; i += 32) {
        const size_t count = n - i < 32 ? n - i : 32;
        const uint32_t word = bits[i / 32];
        if (word == UINT32_MAX) continue;
        for (size_t j = 0; j < count; j++)
            z[i + j] = word >> j & 1 ? z[i + j] : -INFINITY;
    }
}

void rlhf__lm_row_stat(const struct rlhf__cpu *cpu, const struct rlhf__lm_block *b, uint32_t row,
                       float *work) {
    const size_t n = (size_t)b->vocab;
    float *z = b->logits + row * b->stride;
    if (b->support)
        support_apply(z, b->support + row * rlhf_support_words(b->vocab), n);
    else if (work)
        rlhf__lm_truncate(cpu, z, n, b->scale, b->dist, work);
    cpu->hot.head_stat(&b->stat[row], z, n, b->scale, b->with_entropy, NULL);
    if (!b->ref_weight) return;
    const float *r = b->ref_logits + row * b->stride;
    cpu->hot.head_kl(&b->stat[row], z, r, n, b->scale);
    if (b->divergence != RLHF_DIVERGENCE_REVERSE)
        cpu->hot.head_divergence(&b->stat[row], z, r, n, b->scale, b->beta);
}

rlhf_status rlhf__lm_truncate_work(struct rlhf__cpu *cpu, int cuts, int32_t vocab, float **out) {
    *out = NULL;
    if (!cuts) return RLHF_OK;
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_KEEP, keep_bytes(cpu, vocab), &p));
    *out = p;
    return RLHF_OK;
}
