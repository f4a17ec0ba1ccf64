// transformer/small_heads.c: the value head and the score head, forward and backward. Both read the
// final norm's output, in f32.
//
// The value head is linear or d -> 4d -> ReLU -> 1. It reads the states that predict a response
// token. The score head belongs to sequence classifiers and reward models. It reads the pooled
// state of each row, or the state at each response token.
//
// The final norm is computed only at the positions where its output is read. Token scores, and
// pooling by the first or the last token, read single positions. Pooling by mean reads all tokens
// of a row.
#include "internal.h"

// ---- value ----

rlhf_status rlhf__tf_value(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const rlhf_compute *c = m->c;
    const uint32_t rows = w->rows.n_resp;
    const uint64_t wide = (uint64_t)rows * 4 * (uint64_t)m->arch.d;
    rlhf_dev x = w->rf_p;
    if (m->v1) {
        RLHF_TRY(rlhf__tf_reserve(m, &w->v1, wide * sizeof(float)));
        RLHF_TRY(c->linear(c->ctx, w->v1.p, RLHF_F32, 0, x, m->v1,
                           rlhf__tf_global(m, RLHF_TF_V1_B)->value, rows));
        RLHF_TRY(c->act(c->ctx, w->v1.p, w->v1.p, RLHF_ACT_RELU, RLHF_F32, wide));
        x = w->v1.p;
    }
    return c->linear(c->ctx, rlhf__tf_result(&w->result, &w->rows, TF_VALUE), RLHF_F32, 0, x, m->v2,
                     rlhf__tf_global(m, RLHF_TF_V2_B)->value, rows);
}

rlhf_status rlhf__tf_value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d_value,
                               rlhf_dev d_rf) {
    const rlhf_compute *c = m->c;
    const uint32_t rows = w->rows.n_resp;
    const uint64_t wide = (uint64_t)rows * 4 * (uint64_t)m->arch.d;
    const struct rlhf__tf_tensor *v1 = rlhf__tf_global(m, RLHF_TF_V1_W);
    const struct rlhf__tf_tensor *v2 = rlhf__tf_global(m, RLHF_TF_V2_W);
    RLHF_TRY(c->linear_dw(c->ctx, v2[0].grad, v2[1].grad, m->v1 ? w->v1.p : w->rf_p, d_value, m->v2,
                          rows));
    if (!m->v1)
        return d_rf ? c->linear_dx(c->ctx, d_rf, RLHF_F32, 0, d_value, m->v2, rows) : RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.wide, wide * sizeof(float)));
    rlhf_dev dv1 = m->bwd.wide.p;
    RLHF_TRY(c->linear_dx(c->ctx, dv1, RLHF_F32, 0, d_value, m->v2, rows));
    // The output of ReLU is above 0 exactly if its input is above 0. So the output can replace the
    // input here.
    RLHF_TRY(c->act_bwd(c->ctx, dv1, dv1, w->v1.p, RLHF_ACT_RELU, RLHF_F32, wide));
    RLHF_TRY(c->linear_dw(c->ctx, v1[0].grad, v1[1].grad, w->rf_p, dv1, m->v1, rows));
    return d_rf ? c->linear_dx(c->ctx, d_rf, RLHF_F32, 0, dv1, m->v1, rows) : RLHF_OK;
}

// ---- score ----

int32_t rlhf__tf_pooling(const struct rlhf__tf *m) {
    return m->open.pooling ? m->open.pooling : m->arch.pooling;
}

// Stores the final norm's output at the n positions idx (i32 [n], all different) in s->pf, f32 [n,
// d].
static rlhf_status states(struct rlhf__tf *m, const struct rlhf__tf_work *w,
                          struct rlhf__tf_scored *s, rlhf_dev idx, uint32_t n) {
    const rlhf_compute *c = m->c;
    const int32_t d = m->arch.d;
    const uint64_t bytes = (uint64_t)n * (uint64_t)d * sizeof(float);
    RLHF_TRY(rlhf__tf_reserve(m, &s->pf, bytes));
    if (rlhf__tf_norms_sums(&m->arch)) return c->gather(c->ctx, s->pf.p, w->x, idx, n, d, RLHF_F32);
    RLHF_TRY(rlhf__tf_reserve(m, &s->px, bytes));
    RLHF_TRY(rlhf__tf_reserve(m, &s->pstats, (uint64_t)n * rlhf__tf_stats(m) * sizeof(float)));
    RLHF_TRY(c->gather(c->ctx, s->px.p, w->x, idx, n, d, RLHF_F32));
    return rlhf__tf_norm(m, rlhf__tf_global(m, RLHF_TF_FINAL_G), s->pf.p, RLHF_F32,
                         w->train ? s->pstats.p : NULL, s->px.p, n);
}

// Computes out, f32 [n, n_labels], from s->pf.
static rlhf_status head(struct rlhf__tf *m, struct rlhf__tf_scored *s, rlhf_dev out, uint32_t n) {
    const rlhf_compute *c = m->c;
    const uint64_t wide = (uint64_t)n * (uint64_t)m->arch.d;
    const struct rlhf__tf_tensor *b = rlhf__tf_global(m, RLHF_TF_SCORE_B);
    rlhf_dev x = s->pf.p;
    if (m->pool) {
        RLHF_TRY(rlhf__tf_reserve(m, &s->p1, wide * sizeof(float)));
        RLHF_TRY(rlhf__tf_reserve(m, &s->p1a, wide * sizeof(float)));
        RLHF_TRY(c->linear(c->ctx, s->p1.p, RLHF_F32, 0, x, m->pool,
                           rlhf__tf_global(m, RLHF_TF_POOL_B)->value, n));
        RLHF_TRY(c->act(c->ctx, s->p1a.p, s->p1.p, RLHF_ACT_RELU, RLHF_F32, wide));
        x = s->p1a.p;
    }
    return c->linear(c->ctx, out, RLHF_F32, 0, x, m->score, b->n ? b->value : NULL, n);
}

rlhf_status rlhf__tf_score(struct rlhf__tf *m, struct rlhf__tf_work *w, float *host_out) {
    const rlhf_compute *c = m->c;
    struct rlhf__tf_scored *s = &w->pooled;
    const uint32_t n = w->rows.n;
    const uint64_t labels = (uint64_t)m->open.n_labels, d = (uint64_t)m->arch.d;
    if (rlhf__tf_pooling(m) == RLHF_POOL_MEAN) {
        RLHF_TRY(rlhf__tf_reserve(m, &s->pf, n * d * sizeof(float)));
        RLHF_TRY(c->pool(c->ctx, s->pf.p, w->full_p, w->rows.ragged.offset, n, m->arch.d,
                         RLHF_POOL_MEAN));
    } else {
        RLHF_TRY(states(m, w, s, w->rows.pool, n));
    }
    RLHF_TRY(rlhf__tf_reserve(m, &s->score, n * labels * sizeof(float)));
    RLHF_TRY(head(m, s, s->score.p, n));
    return host_out ? c->download(c->ctx, host_out, s->score.p, n * labels * sizeof(float))
                    : RLHF_OK;
}

rlhf_status rlhf__tf_token_score(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    RLHF_TRY(states(m, w, &w->token, w->rows.read, w->rows.n_resp));
    return head(m, &w->token, rlhf__tf_result(&w->result, &w->rows, TF_TOKEN_SCORE),
                w->rows.n_resp);
}

// Backpropagates bwd.dpf, the gradient of the states at idx, and adds the result to ds.
static rlhf_status states_bwd(struct rlhf__tf *m, const struct rlhf__tf_scored *s, rlhf_dev idx,
                              uint32_t n) {
    const rlhf_compute *c = m->c;
    const int32_t d = m->arch.d;
    rlhf_dev dpf = m->bwd.dpf.p;
    if (!rlhf__tf_norms_sums(&m->arch)) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dpx, (uint64_t)n * (uint64_t)d * sizeof(float)));
        RLHF_TRY(rlhf__tf_norm_bwd(m, rlhf__tf_global(m, RLHF_TF_FINAL_G), m->bwd.dpx.p, 0, dpf,
                                   RLHF_F32, s->px.p, s->pstats.p, n));
        dpf = m->bwd.dpx.p;
    }
    return c->scatter_add(c->ctx, m->bwd.ds.p, dpf, RLHF_F32, idx, n, d);
}

// Backpropagates bwd.dpf, the gradient of mean-pooled states, and adds the result to ds.
static rlhf_status mean_bwd(struct rlhf__tf *m, const struct rlhf__tf_work *w) {
    const rlhf_compute *c = m->c;
    const struct rlhf__tf_rows *r = &w->rows;
    const int32_t d = m->arch.d;
    const uint64_t n = (uint64_t)r->total * (uint64_t)d;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dfull, n * sizeof(float)));
    RLHF_TRY(c->pool_bwd(c->ctx, m->bwd.dfull.p, m->bwd.dpf.p, r->ragged.offset, r->n, d,
                         RLHF_POOL_MEAN));
    if (rlhf__tf_norms_sums(&m->arch))
        return c->add(c->ctx, m->bwd.ds.p, m->bwd.dfull.p, RLHF_F32, n);
    return rlhf__tf_norm_bwd(m, rlhf__tf_global(m, RLHF_TF_FINAL_G), m->bwd.ds.p, 1, m->bwd.dfull.p,
                             RLHF_F32, w->x, w->fstats.p, r->total);
}

// From dy, f32 [n, n_labels], computes the gradients of the head's tensors, and stores the gradient
// of the head's input in bwd.dpf.
static rlhf_status head_bwd(struct rlhf__tf *m, const struct rlhf__tf_scored *s, rlhf_dev dy,
                            uint32_t n) {
    const rlhf_compute *c = m->c;
    const uint64_t wide = (uint64_t)n * (uint64_t)m->arch.d;
    const struct rlhf__tf_tensor *t = rlhf__tf_global(m, RLHF_TF_SCORE_W);
    const struct rlhf__tf_tensor *p = rlhf__tf_global(m, RLHF_TF_POOL_W);
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dpf, wide * sizeof(float)));
    RLHF_TRY(
        c->linear_dw(c->ctx, t[0].grad, t[1].grad, m->pool ? s->p1a.p : s->pf.p, dy, m->score, n));
    if (!m->pool) return c->linear_dx(c->ctx, m->bwd.dpf.p, RLHF_F32, 0, dy, m->score, n);
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dp1, wide * sizeof(float)));
    rlhf_dev dp1 = m->bwd.dp1.p;
    RLHF_TRY(c->linear_dx(c->ctx, dp1, RLHF_F32, 0, dy, m->score, n));
    RLHF_TRY(c->act_bwd(c->ctx, dp1, dp1, s->p1.p, RLHF_ACT_RELU, RLHF_F32, wide));
    RLHF_TRY(c->linear_dw(c->ctx, p[0].grad, p[1].grad, s->pf.p, dp1, m->pool, n));
    return c->linear_dx(c->ctx, m->bwd.dpf.p, RLHF_F32, 0, dp1, m->pool, n);
}

rlhf_status rlhf__tf_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const float *host_d) {
    const uint32_t n = w->rows.n;
    const uint64_t bytes = (uint64_t)n * (uint64_t)m->open.n_labels * sizeof(float);
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dscore, bytes));
    RLHF_TRY(m->c->upload(m->c->ctx, m->bwd.dscore.p, host_d, bytes));
    RLHF_TRY(head_bwd(m, &w->pooled, m->bwd.dscore.p, n));
    if (rlhf__tf_pooling(m) == RLHF_POOL_MEAN) return mean_bwd(m, w);
    return states_bwd(m, &w->pooled, w->rows.pool, n);
}

rlhf_status rlhf__tf_token_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d) {
    RLHF_TRY(head_bwd(m, &w->token, d, w->rows.n_resp));
    return states_bwd(m, &w->token, w->rows.read, w->rows.n_resp);
}
