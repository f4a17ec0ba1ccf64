// transformer/heads.c: the per-token heads. Forward reads the residual stream and writes the values
// of the heads to host memory. Backward reads the gradients of these values from host memory and
// computes the gradient of the residual stream, m->bwd.ds.
//
// Only states that predict a response token are normalized and multiplied with the LM head. Entry t
// of logp, entropy, kl and value is computed from state t - 1. The token score of t is computed
// from state t, which includes token t.
#include "internal.h"

#include <string.h>

enum { LM_HEADS = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL };

rlhf_status rlhf__tf_resp_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const uint64_t n = (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d;
    if (!w->rows.resp_is_all) RLHF_TRY(rlhf__tf_reserve(m, &w->rx, n * sizeof(float)));
    if (!rlhf__tf_norms_sums(&m->arch)) {
        RLHF_TRY(rlhf__tf_reserve(m, &w->rf, n * sizeof(float)));
        RLHF_TRY(rlhf__tf_reserve(m, &w->rstats,
                                  (uint64_t)w->rows.n_resp * rlhf__tf_stats(m) * sizeof(float)));
    }
    return m->dtype == RLHF_F32 ? RLHF_OK : rlhf__tf_reserve(m, &w->rh, n * rlhf__tf_esz(m));
}

rlhf_status rlhf__tf_resp_state(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const rlhf_compute *c = m->c;
    const uint64_t n = (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d;
    rlhf_dev x = w->x;
    RLHF_TRY(rlhf__tf_resp_reserve(m, w));
    if (!w->rows.resp_is_all) {
        x = w->rx.p;
        RLHF_TRY(c->gather(c->ctx, x, w->x, w->rows.resp, w->rows.n_resp, m->arch.d, RLHF_F32));
    }
    w->rf_p = x;
    if (!rlhf__tf_norms_sums(&m->arch)) {
        w->rf_p = w->rf.p;
        RLHF_TRY(rlhf__tf_norm(m, rlhf__tf_global(m, RLHF_TF_FINAL_G), w->rf_p, RLHF_F32,
                               w->train ? w->rstats.p : NULL, x, w->rows.n_resp));
    }
    w->rh_p = w->rf_p;
    if (m->dtype == RLHF_F32) return RLHF_OK;
    w->rh_p = w->rh.p;
    return c->convert(c->ctx, w->rh_p, m->dtype, w->rf_p, RLHF_F32, n);
}

int32_t rlhf__tf_gives_dev_hidden(uint32_t heads, const rlhf_heads *out) {
    return (heads & RLHF_HEAD_HIDDEN) && out->dev_hidden;
}

const int32_t *rlhf__tf_reference_rows(const rlhf_forward *f) {
    return (f->heads & RLHF_HEAD_KL) && f->kl_dev_hidden ? f->kl_dev_row : NULL;
}

static uint64_t reference_width(const rlhf_forward *f) {
    return (uint64_t)((const struct rlhf__tf *)f->kl_self)->arch.d;
}

static rlhf_status check_divergence(struct rlhf__tf *m, const rlhf_forward *f) {
    const struct rlhf__tf *ref = f->kl_self;
    const double beta = f->divergence_beta;
    const int plain = f->divergence == RLHF_DIVERGENCE_REVERSE && ref->arch.d == m->arch.d;
    if (f->divergence < RLHF_DIVERGENCE_REVERSE || f->divergence > RLHF_DIVERGENCE_JS)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "kl head: divergence %d is unknown",
                             f->divergence);
    if (f->divergence == RLHF_DIVERGENCE_JS && !(beta > 0 && beta < 1))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "kl head: divergence_beta is %g, must be in (0, 1)",
                             beta);
    if (plain || (m->c->flags & RLHF_COMPUTE_DIVERGENCE)) return RLHF_OK;
    return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                         "kl head: the compute backend '%s' has only the reverse divergence, from "
                         "a model of the same width",
                         m->c->name);
}

static rlhf_status check_reference(struct rlhf__tf *m, const rlhf_forward *f) {
    const struct rlhf__tf *ref = f->kl_self;
    if (!ref || (!f->kl_hidden && !f->kl_dev_hidden))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "kl head: no reference model was given");
    if (ref->magic != m->magic || ref->dtype != m->dtype ||
        rlhf__tf_outputs(ref) != rlhf__tf_outputs(m))
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "kl head: policy and reference differ in vocabulary or dtype");
    RLHF_TRY(check_divergence(m, f));
    if (!ref->lm_fresh)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "kl head: the reference has not been run");
    return RLHF_OK;
}

// The next two functions set w->ref_p to the reference's hidden states at the scored positions, in
// the act dtype. gather_reference uses the states in kl_dev_hidden, in device memory; if kl_dev_row
// is set, it copies the rows listed there. upload_reference copies the states from the host.
static rlhf_status gather_reference(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                    const rlhf_forward *f) {
    w->ref_p = f->kl_dev_hidden;
    if (!f->kl_dev_row) return RLHF_OK;
    for (uint32_t i = 0; i < w->rows.n_resp; i++)
        if (f->kl_dev_row[i] < 0)
            return rlhf__tf_fail(m, RLHF_E_INVALID, "kl head: kl_dev_row[%u] is %d; at least 0", i,
                                 f->kl_dev_row[i]);
    const uint64_t d = reference_width(f);
    RLHF_TRY(rlhf__tf_reserve(m, &w->ref, (uint64_t)w->rows.n_resp * d * rlhf__tf_esz(m)));
    w->ref_p = w->ref.p;
    return m->c->gather(m->c->ctx, w->ref_p, f->kl_dev_hidden, w->rows.ref, w->rows.n_resp,
                        (int32_t)d, m->dtype);
}

static rlhf_status upload_reference(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                    const rlhf_batch *b, const rlhf_forward *f) {
    const uint64_t d = reference_width(f), n = w->rows.n_resp * d;
    void *tmp;
    RLHF_TRY(rlhf__tf_host_tmp(m, n * sizeof(float), &tmp));
    float *to = tmp;
    for (uint32_t i = 0; i < b->n; i++)
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++) {
            if (!rlhf__tf_is_response(b->turn, t)) continue;
            memcpy(to, f->kl_hidden + (uint64_t)(t - 1) * d, d * sizeof(float));
            to += d;
        }
    const uint64_t raw = (n * sizeof(float) + 63) & ~(uint64_t)63;
    RLHF_TRY(rlhf__tf_reserve(m, &w->ref, raw + n * rlhf__tf_esz(m)));
    RLHF_TRY(m->c->upload(m->c->ctx, w->ref.p, tmp, n * sizeof(float)));
    w->ref_p = w->ref.p;
    if (m->dtype == RLHF_F32) return RLHF_OK;
    w->ref_p = rlhf_dev_at(w->ref.p, raw);
    return m->c->convert(m->c->ctx, w->ref_p, m->dtype, w->ref.p, RLHF_F32, n);
}

void rlhf__tf_lm_args(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                      const rlhf_forward *f, rlhf_lm_head *out) {
    memset(out, 0, sizeof *out);
    out->size = (uint32_t)sizeof *out;
    out->rows = w->rows.n_resp;
    out->d = m->arch.d;
    out->vocab = rlhf__tf_outputs(m);
    out->dtype = m->dtype;
    out->dist = rlhf__tf_dist(f->dist);
    out->hidden = w->rh_p;
    out->weight = m->lm;
    out->logit_scale = m->arch.logit_scale;
    out->softcap = m->arch.softcap;
    out->target = w->rows.target;
    out->support = w->support_p;
    out->logp = rlhf__tf_result(&w->result, &w->rows, TF_LOGP);
    if (f->heads & RLHF_HEAD_ENTROPY)
        out->entropy = rlhf__tf_result(&w->result, &w->rows, TF_ENTROPY);
    if (f->heads & RLHF_HEAD_KL) {
        const struct rlhf__tf *ref = f->kl_self;
        out->kl = rlhf__tf_result(&w->result, &w->rows, TF_KL);
        out->ref_hidden = w->ref_p;
        out->ref_weight = ref->lm;
        out->ref_d = ref->arch.d == m->arch.d ? 0 : ref->arch.d;
        out->ref_logit_scale = ref->arch.logit_scale;
        out->ref_softcap = ref->arch.softcap;
        out->divergence = f->divergence;
        out->divergence_beta = f->divergence_beta;
    }
}

static rlhf_status upload_support(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                  const rlhf_forward *f) {
    const uint64_t bytes =
        (uint64_t)w->rows.n_resp * rlhf_support_words(rlhf__tf_outputs(m)) * sizeof *f->support;
    w->support_p = NULL;
    if (!f->support) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &w->support, bytes));
    w->support_p = w->support.p;
    return m->c->upload(m->c->ctx, w->support_p, f->support, bytes);
}

static rlhf_status lm(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                      const rlhf_forward *f) {
    rlhf_lm_head args;
    RLHF_TRY(rlhf__tf_lm_ready(m));
    if (f->heads & RLHF_HEAD_KL) {
        RLHF_TRY(check_reference(m, f));
        RLHF_TRY(f->kl_dev_hidden ? gather_reference(m, w, f) : upload_reference(m, w, b, f));
    }
    RLHF_TRY(upload_support(m, w, f));
    rlhf__tf_lm_args(m, w, f, &args);
    return m->c->lm_head(m->c->ctx, &args);
}

// Copies the n_resp values of one head to out[total]. The entries of all other tokens become 0.
static void spread(const struct rlhf__tf_work *w, const rlhf_batch *b, const float *from,
                   float *out) {
    memset(out, 0, b->total * sizeof *out);
    for (uint32_t i = 0; w->rows.n_resp && i < b->n; i++)
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++)
            if (rlhf__tf_is_response(b->turn, t)) out[t] = *from++;
}

// Downloads all requested heads in one transfer, so that the host waits for the device only once.
static rlhf_status spread_all(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                              uint32_t heads, const rlhf_heads *out) {
    float *const to[TF_N_RESULT] = {[TF_LOGP] = heads & RLHF_HEAD_LOGP ? out->logp : NULL,
                                    [TF_ENTROPY] = heads & RLHF_HEAD_ENTROPY ? out->entropy : NULL,
                                    [TF_KL] = heads & RLHF_HEAD_KL ? out->kl : NULL,
                                    [TF_VALUE] = heads & RLHF_HEAD_VALUE ? out->value : NULL,
                                    [TF_TOKEN_SCORE] =
                                        heads & RLHF_HEAD_TOKEN_SCORE ? out->token_score : NULL};
    const uint64_t stride = rlhf__tf_result_stride(&w->rows);
    int32_t first = 0, end = TF_N_RESULT;
    while (end > 0 && !to[end - 1])
        end--;
    while (first < end && !to[first])
        first++;
    if (first == end) return RLHF_OK;
    void *tmp = NULL;
    if (w->rows.n_resp) {
        const uint64_t bytes = (uint64_t)(end - first) * stride * sizeof(float);
        RLHF_TRY(rlhf__tf_host_tmp(m, bytes, &tmp));
        const rlhf_dev from = rlhf__tf_result(&w->result, &w->rows, (enum rlhf__tf_result)first);
        RLHF_TRY(m->c->download(m->c->ctx, tmp, from, bytes));
    }
    const float *row = tmp;
    for (int32_t i = first; i < end; i++, row += w->rows.n_resp ? stride : 0)
        if (to[i]) spread(w, b, row, to[i]);
    return RLHF_OK;
}

rlhf_status rlhf__tf_full_norm(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const uint64_t total = w->rows.total;
    w->full_p = w->x;
    if (rlhf__tf_norms_sums(&m->arch)) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &w->full, total * (uint64_t)m->arch.d * sizeof(float)));
    RLHF_TRY(rlhf__tf_reserve(m, &w->fstats, total * rlhf__tf_stats(m) * sizeof(float)));
    w->full_p = w->full.p;
    return rlhf__tf_norm(m, rlhf__tf_global(m, RLHF_TF_FINAL_G), w->full_p, RLHF_F32,
                         w->train ? w->fstats.p : NULL, w->x, w->rows.total);
}

rlhf_status rlhf__tf_heads(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                           const rlhf_forward *f, const rlhf_heads *out) {
    const int32_t mean = (f->heads & RLHF_HEAD_SCORE) && rlhf__tf_pooling(m) == RLHF_POOL_MEAN;
    RLHF_TRY(rlhf__tf_reserve(m, &w->result,
                              TF_N_RESULT * rlhf__tf_result_stride(&w->rows) * sizeof(float)));
    const int32_t whole = (f->heads & RLHF_HEAD_HIDDEN) && out->hidden;
    const int32_t dev = rlhf__tf_gives_dev_hidden(f->heads, out);
    if (whole || mean) RLHF_TRY(rlhf__tf_full_norm(m, w));
    if (f->heads & RLHF_HEAD_HIDDEN) {
        if (rlhf__tf_has_lm(m)) RLHF_TRY(rlhf__tf_lm_ready(m)); // prepare it for use as a reference
        if (whole)
            RLHF_TRY(m->c->download(m->c->ctx, out->hidden, w->full_p,
                                    b->total * (uint64_t)m->arch.d * sizeof(float)));
    }
    if (f->heads & RLHF_HEAD_SCORE) RLHF_TRY(rlhf__tf_score(m, w, out->score));
    if (w->rows.n_resp && (f->heads & RLHF_HEAD_TOKEN_SCORE)) RLHF_TRY(rlhf__tf_token_score(m, w));
    if (w->rows.n_resp && ((f->heads & (LM_HEADS | RLHF_HEAD_VALUE)) || dev)) {
        RLHF_TRY(rlhf__tf_resp_state(m, w));
        if (dev)
            RLHF_TRY(m->c->copy(m->c->ctx, out->dev_hidden, w->rh_p,
                                (uint64_t)w->rows.n_resp * (uint64_t)m->arch.d * rlhf__tf_esz(m)));
        if (f->heads & RLHF_HEAD_VALUE) RLHF_TRY(rlhf__tf_value(m, w));
        if (f->heads & LM_HEADS) RLHF_TRY(lm(m, w, b, f));
    }
    return spread_all(m, w, b, f->heads, out);
}

// ---- backward ----

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

// If the trunk is trained and there are derivatives by logp, entropy or kl, computes the gradient
// of the LM head's matrix. In this case, also computes the LM head's part of the gradient of the
// final norm's output, in bwd.drh (act dtype), and sets *made to 1. Otherwise sets *made to 0.
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

// Computes the gradients of the value head's tensors. If the head is not detached and the trunk is
// trained, also computes the value head's part of the gradient of the final norm's output, in
// bwd.drf (f32), and sets *made to 1. Otherwise sets *made to 0.
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
    if (!rlhf__tf_norms_sums(&m->arch)) {
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
