// transformer/heads_bwd.c: computes the gradient of the residual stream, m->bwd.ds, from the
// gradients of the heads in host memory.
#include "internal.h"

#include <string.h>

// The gradients of each head in bwd.dres, or NULL.
struct derivatives {
    rlhf_dev of[TF_N_RESULT];
};

// Uploads all gradients at the scored positions in one transfer.
static rlhf_status upload(struct rlhf__tf *m, const struct rlhf__tf_work *w, const rlhf_batch *b,
                          const rlhf_heads *g, struct derivatives *d) {
    const float *const from[TF_N_RESULT] = {[TF_LOGP] = g->logp,
                                            [TF_ENTROPY] = g->entropy,
                                            [TF_KL] = g->kl,
                                            [TF_VALUE] = g->value,
                                            [TF_TOKEN_SCORE] = g->token_score};
    const uint64_t stride = rlhf__tf_result_stride(&w->rows);
    const uint64_t bytes = TF_N_RESULT * stride * sizeof(float);
    int32_t first = TF_N_RESULT, end = 0;
    void *tmp;
    RLHF_TRY(rlhf__tf_host_tmp(m, bytes, &tmp));
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dres, bytes));
    float *host = tmp;
    memset(host, 0, bytes);
    for (int32_t i = 0; i < TF_N_RESULT; i++) {
        float *to = host + (uint64_t)i * stride;
        d->of[i] = NULL;
        if (!from[i]) continue;
        if (first > i) first = i;
        end = i + 1;
        d->of[i] = rlhf__tf_result(&m->bwd.dres, &w->rows, (enum rlhf__tf_result)i);
        for (uint32_t r = 0; r < b->n; r++)
            for (int32_t t = b->offset[r] + b->prompt_len[r]; t < b->offset[r + 1]; t++)
                if (rlhf__tf_is_response(b->turn, t)) *to++ = from[i][t];
    }
    if (first >= end) return RLHF_OK;
    return m->c->upload(m->c->ctx, d->of[first], host + (uint64_t)first * stride,
                        (uint64_t)(end - first) * stride * sizeof(float));
}

// Computes the gradient of the LM head's matrix. Also stores in bwd.drh (act dtype) the part of the
// gradient of the final norm's output that comes from the LM head. Sets *made to 1 if there is such
// a part.
static rlhf_status lm_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_forward *f,
                          const struct derivatives *d, int32_t *made) {
    rlhf_lm_head a;
    *made = 0;
    if (!d->of[TF_LOGP] && !d->of[TF_ENTROPY] && !d->of[TF_KL]) return RLHF_OK;
    if (!rlhf__tf_trunk_learns(m)) return RLHF_OK; // then the LM head is not trained either
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.drh,
                              (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d * rlhf__tf_esz(m)));
    rlhf__tf_lm_args(m, w, f, &a);
    a.d_logp = d->of[TF_LOGP];
    a.d_entropy = d->of[TF_ENTROPY];
    a.d_kl = d->of[TF_KL];
    a.d_hidden = m->bwd.drh.p;
    a.d_weight = rlhf__tf_global(m, m->arch.tied ? RLHF_TF_WTE : RLHF_TF_LM)->grad;
    *made = 1;
    return m->c->lm_head_bwd(m->c->ctx, &a);
}

// Computes the gradients of the value head's tensors. Unless the head is detached, also stores in
// bwd.drf (f32) the part of the gradient of the final norm's output that comes from the value head.
static rlhf_status value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d_value,
                             int32_t *made) {
    *made = 0;
    if (!d_value) return RLHF_OK;
    if (m->open.value_detach || !rlhf__tf_trunk_learns(m))
        return rlhf__tf_value_bwd(m, w, d_value, NULL);
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.drf,
                              (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d * sizeof(float)));
    *made = 1;
    return rlhf__tf_value_bwd(m, w, d_value, m->bwd.drf.p);
}

// Backpropagates through the final norm at the scored positions. Adds the result to ds.
static rlhf_status resp_state_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev dy,
                                  int32_t dtype) {
    const uint32_t rows = w->rows.n_resp;
    const int32_t d = m->arch.d;
    if (m->arch.pre_norm) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.drx, (uint64_t)rows * (uint64_t)d * sizeof(float)));
        RLHF_TRY(rlhf__tf_norm_bwd(m, rlhf__tf_global(m, RLHF_TF_FINAL_G), m->bwd.drx.p, 0, dy,
                                   dtype, w->rx.p, w->rstats.p, rows));
        dy = m->bwd.drx.p;
        dtype = RLHF_F32;
    }
    return m->c->scatter_add(m->c->ctx, m->bwd.ds.p, dy, dtype, w->rows.resp, rows, d);
}

static rlhf_status resp_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_forward *f,
                            const struct derivatives *d, int32_t *trunk) {
    const uint64_t n = (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d;
    int32_t from_lm, from_value;
    RLHF_TRY(lm_bwd(m, w, f, d, &from_lm));
    RLHF_TRY(value_bwd(m, w, d->of[TF_VALUE], &from_value));
    if (!from_lm && !from_value) return RLHF_OK;
    *trunk = 1;
    if (!from_value) return resp_state_bwd(m, w, m->bwd.drh.p, m->dtype);
    if (from_lm) RLHF_TRY(m->c->add(m->c->ctx, m->bwd.drf.p, m->bwd.drh.p, m->dtype, n));
    return resp_state_bwd(m, w, m->bwd.drf.p, RLHF_F32);
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
        struct derivatives d;
        RLHF_TRY(upload(m, w, b, &g, &d));
        RLHF_TRY(resp_bwd(m, w, f, &d, &trunk));
        if (d.of[TF_TOKEN_SCORE]) {
            RLHF_TRY(rlhf__tf_token_score_bwd(m, w, d.of[TF_TOKEN_SCORE]));
            trunk = 1;
        }
    }
    if ((f->heads & RLHF_HEAD_SCORE) && g.score) {
        RLHF_TRY(rlhf__tf_score_bwd(m, w, g.score));
        trunk = 1;
    }
    return trunk && rlhf__tf_trunk_learns(m) ? rlhf__tf_trunk_bwd(m, w, f) : RLHF_OK;
}
