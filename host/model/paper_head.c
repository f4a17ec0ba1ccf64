// paper_head.c: what the language-model head takes on paper (paper_inner.h).
#include "model/paper_inner.h"

#include <string.h>

// The backends' own where nothing is set: 4 GiB of a card (rlhf__compute_workspace knows large
// ones), and of the CPU's memory 384 MiB or what 1536 rows of a larger vocabulary take.
static uint64_t budget_of(const struct rlhf__paper *p, uint64_t vocab) {
    const uint64_t least = (uint64_t)384 << 20, rows = rlhf__paper_times(vocab, 6 * 1024);
    if (p->budget) return p->budget;
    if (p->real->device != RLHF_DEVICE_CPU) return (uint64_t)4096 << 20;
    return rows < least ? least : rows;
}

// Bytes a token of derivatives of logits in bf16, which a CPU writes over the logits.
static uint64_t half_of(const struct rlhf__paper *p, const rlhf_lm_head *a) {
    return a->dtype == RLHF_BF16 && p->real->device != RLHF_DEVICE_CPU ? 2 : 0;
}

// Rows of a block where not all fit: in f32 products of a CPU whole chains of the sums over rows.
static uint64_t part_of(const struct rlhf__paper *p, const rlhf_lm_head *a, uint64_t fit) {
    const int in_f32 = a->dtype == RLHF_F32 || !(p->real->dtypes & 1u << RLHF_BF16);
    if (p->real->device != RLHF_DEVICE_CPU || !in_f32) return fit < 64 ? 32 : fit - fit % 64;
    return fit < 256 ? 256 : fit - fit % 256;
}

// Logits of as many rows as the budget has room for, with those of the reference and, for backward
// in bf16, their derivatives.
static uint64_t logits(struct rlhf__paper *p, const rlhf_lm_head *a, int with_ref) {
    const uint64_t n = (uint64_t)a->vocab, half = half_of(p, a);
    uint64_t fit = budget_of(p, n) / (n * (4u + (with_ref ? 4u : 0u) + half));
    if (fit < a->rows) fit = part_of(p, a, fit);
    if (fit > a->rows) fit = a->rows;
    rlhf__paper_work(p, WORK_LOGITS, rlhf__paper_times(fit * n, 4));
    if (with_ref) rlhf__paper_work(p, WORK_REF, rlhf__paper_times(fit * n, 4));
    rlhf__paper_product(p, a->weight, fit);
    return fit;
}

static rlhf_status p_lm_head(void *ctx, const rlhf_lm_head *a) {
    logits(ctx, a, a->kl != NULL);
    return RLHF_OK;
}
static rlhf_status p_lm_head_bwd(void *ctx, const rlhf_lm_head *a) {
    struct rlhf__paper *p = ctx;
    const uint64_t fit = logits(p, a, a->d_kl != NULL);
    rlhf__paper_work(p, WORK_DLOGITS, rlhf__paper_times(fit * (uint64_t)a->vocab, half_of(p, a)));
    if (a->d_hidden) rlhf__paper_product_dx(p, a->weight, fit);
    if (a->d_weight) rlhf__paper_product_dw(p, a->weight, fit);
    return RLHF_OK;
}
static rlhf_status p_lm_sample(void *ctx, const rlhf_lm_sample *a) {
    const rlhf_lm_head as_head = {
        .rows = a->rows, .vocab = a->vocab, .dtype = a->dtype, .weight = a->weight};
    logits(ctx, &as_head, 0);
    rlhf__paper_on_host(ctx, WORK_KEEP, 8 * (uint64_t)a->vocab);
    if (a->id) return RLHF_OK;
    if (a->host_id) memset(a->host_id, 0, a->rows * sizeof *a->host_id);
    if (a->host_logp) memset(a->host_logp, 0, a->rows * sizeof *a->host_logp);
    if (a->host_support)
        memset(a->host_support, 0,
               a->rows * (size_t)rlhf_support_words(a->vocab) * sizeof *a->host_support);
    return RLHF_OK;
}

void rlhf__paper_fill_head(rlhf_compute *t, const rlhf_compute *real) {
    RLHF__PAPER_PUT(lm_head)
    RLHF__PAPER_PUT(lm_head_bwd)
    RLHF__PAPER_PUT(lm_sample)
}
