// paper_rows.c: what attention, norms and Muon take on paper (paper_inner.h).
#include "model/paper_inner.h"

// Ops that do nothing name their arguments as the table does.
#pragma GCC diagnostic ignored "-Wunused-parameter"

static rlhf_status p_muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows,
                          int32_t cols, const rlhf_muon *a) {
    const uint64_t n = (uint64_t)(rows < cols ? rows : cols);
    const uint64_t m = (uint64_t)(rows < cols ? cols : rows);
    rlhf__paper_work(ctx, WORK_MUON,
                     rlhf__paper_times(rlhf__paper_times(n, 2 * m + 3 * n), sizeof(float)));
    if (a->ns_steps < 1) return RLHF_OK;
    rlhf__paper_product_plain(ctx, n, m, n); // X X^T
    rlhf__paper_product_plain(ctx, n, n, m); // the polynomial of it times X
    return RLHF_OK;
}

// Scores of a few queries with all keys, and keys and values in another order.
static rlhf_status p_attention(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev out,
                               rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    const uint64_t keys = rlhf__paper_up(r->max_k, 64),
                   width = rlhf__paper_up((uint64_t)a->head_dim, 16);
    const uint64_t floats = (keys + r->max_k) * width + 8 * (keys + width);
    rlhf__paper_on_host(ctx, WORK_ATTENTION,
                        rlhf__paper_times(rlhf__paper_up(floats, 64) + 64, sizeof(float)));
    return RLHF_OK;
}
static rlhf_status p_attention_bwd(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev dq,
                                   rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                   rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    const uint64_t keys = rlhf__paper_up(r->max_k, 64),
                   width = rlhf__paper_up((uint64_t)a->head_dim, 16);
    const uint64_t floats = 5 * keys * width + 128 * (keys + width) + 8 * width;
    rlhf__paper_on_host(ctx, WORK_ATTENTION_BWD,
                        rlhf__paper_times(rlhf__paper_up(floats, 64) + 64, sizeof(float)));
    return RLHF_OK;
}

// Sums over rows: up to 64 partial ones.
static rlhf_status p_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                              rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                              rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d) {
    if (dgamma || dbeta)
        rlhf__paper_work(ctx, WORK_PARTIAL,
                         rlhf__paper_times(rows < 64 ? rows : 64, 8 * (uint64_t)d));
    return RLHF_OK;
}

void rlhf__paper_fill_rows(rlhf_compute *t, const rlhf_compute *real) {
    RLHF__PAPER_PUT(muon)
    RLHF__PAPER_PUT(attention)
    RLHF__PAPER_PUT(attention_bwd)
    RLHF__PAPER_PUT(norm_bwd)
}
