// transformer/heads_bwd.c: from derivatives with respect to heads (host memory) to the derivative
// with respect to the residual stream, m->bwd.ds.
#include "internal.h"

// Derivatives of one head at the scored positions, in region i of bwd.dres. NULL in: NULL out.
static rlhf_status gather_grad(struct rlhf__tf *m, const struct rlhf__tf_work *w,
                               const rlhf_batch *b, const float *src, uint64_t i, rlhf_dev *out) {
    const uint64_t bytes = (uint64_t)w->rows.n_resp * sizeof(float);
    void *tmp;
    *out = NULL;
    if (!src) return RLHF_OK;
    RLHF_TRY(rlhf__tf_host_tmp(m, bytes, &tmp));
    float *to = tmp;
    for (uint32_t r = 0; r < b->n; r++)
        for (int32_t t = b->offset[r] + b->prompt_len[r]; t < b->offset[r + 1]; t++)
            *to++ = src[t];
    *out = rlhf_dev_at(m->bwd.dres.p, i * bytes);
    return m->c->upload(m->c->ctx, *out, tmp, bytes);
}

// d(loss)/d(final norm output) from the LM head, act dtype, in bwd.drh; *made says whether any.
static rlhf_status lm_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                          const rlhf_forward *f, const rlhf_heads *g, int32_t *made) {
    rlhf_lm_head a;
    *made = 0;
    if (!g->logp && !g->entropy && !g->kl) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.drh,
                              (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d * rlhf__tf_esz(m)));
    rlhf__tf_lm_args(m, w, f, &a);
    RLHF_TRY(gather_grad(m, w, b, g->logp, 0, &a.d_logp));
    RLHF_TRY(gather_grad(m, w, b, g->entropy, 1, &a.d_entropy));
    RLHF_TRY(gather_grad(m, w, b, g->kl, 2, &a.d_kl));
    a.d_hidden = m->bwd.drh.p;
    a.d_weight = rlhf__tf_global(m, m->arch.tied ? TF_WTE : TF_LM)->grad;
    *made = 1;
    return m->c->lm_head_bwd(m->c->ctx, &a);
}

// The value head; its share of d(final norm output), f32, in bwd.drf unless detached.
static rlhf_status value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                             const rlhf_heads *g, int32_t *made) {
    rlhf_dev d_value;
    *made = 0;
    RLHF_TRY(gather_grad(m, w, b, g->value, 3, &d_value));
    if (!d_value) return RLHF_OK;
    if (m->open.value_detach) return rlhf__tf_value_bwd(m, w, d_value, NULL);
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.drf,
                              (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d * sizeof(float)));
    *made = 1;
    return rlhf__tf_value_bwd(m, w, d_value, m->bwd.drf.p);
}

// Back through the final norm at the scored positions and into ds.
static rlhf_status resp_state_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev dy,
                                  int32_t dtype) {
    const uint32_t rows = w->rows.n_resp;
    const int32_t d = m->arch.d;
    if (m->arch.pre_norm) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.drx, (uint64_t)rows * (uint64_t)d * sizeof(float)));
        RLHF_TRY(rlhf__tf_norm_bwd(m, rlhf__tf_global(m, TF_FINAL_G), m->bwd.drx.p, 0, dy, dtype,
                                   w->rx.p, w->rstats.p, rows));
        dy = m->bwd.drx.p;
        dtype = RLHF_F32;
    }
    return m->c->scatter_add(m->c->ctx, m->bwd.ds.p, dy, dtype, w->rows.resp, rows, d);
}

static rlhf_status resp_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                            const rlhf_forward *f, const rlhf_heads *g, int32_t *trunk) {
    const uint64_t n = (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d;
    int32_t from_lm, from_value;
    RLHF_TRY(lm_bwd(m, w, b, f, g, &from_lm));
    RLHF_TRY(value_bwd(m, w, b, g, &from_value));
    if (!from_lm && !from_value) return RLHF_OK;
    *trunk = 1;
    if (!from_value) return resp_state_bwd(m, w, m->bwd.drh.p, m->dtype);
    if (from_lm) RLHF_TRY(m->c->add(m->c->ctx, m->bwd.drf.p, m->bwd.drh.p, m->dtype, n));
    return resp_state_bwd(m, w, m->bwd.drf.p, RLHF_F32);
}

static rlhf_status token_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                                   const rlhf_heads *g, int32_t *trunk) {
    rlhf_dev d;
    RLHF_TRY(gather_grad(m, w, b, g->token_score, 4, &d));
    if (!d) return RLHF_OK;
    *trunk = 1;
    return rlhf__tf_token_score_bwd(m, w, d);
}

rlhf_status rlhf__tf_heads_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                               const rlhf_forward *f, const rlhf_heads *grad) {
    const uint64_t bytes = (uint64_t)w->rows.total * (uint64_t)m->arch.d * sizeof(float);
    rlhf_heads g = *grad;
    int32_t trunk = 0;
    if (!(f->heads & RLHF_HEAD_LOGP)) g.logp = NULL;
    if (!(f->heads & RLHF_HEAD_ENTROPY)) g.entropy = NULL;
    if (!(f->heads & RLHF_HEAD_KL)) g.kl = NULL;
    if (!(f->heads & RLHF_HEAD_VALUE)) g.value = NULL;
    if (!(f->heads & RLHF_HEAD_TOKEN_SCORE)) g.token_score = NULL;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.ds, bytes));
    RLHF_TRY(m->c->zero(m->c->ctx, m->bwd.ds.p, bytes));
    if (w->rows.n_resp) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dres, 5 * (uint64_t)w->rows.n_resp * sizeof(float)));
        RLHF_TRY(resp_bwd(m, w, b, f, &g, &trunk));
        RLHF_TRY(token_score_bwd(m, w, b, &g, &trunk));
    }
    if ((f->heads & RLHF_HEAD_SCORE) && g.score) {
        RLHF_TRY(rlhf__tf_score_bwd(m, w, g.score));
        trunk = 1;
    }
    return trunk ? rlhf__tf_trunk_bwd(m, w) : RLHF_OK;
}
