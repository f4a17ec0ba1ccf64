// transformer/score.c: the pooled score head of a sequence classifier or reward model, in f32;
// forward and backward.
//
// First and last pooling normalise only the positions they read; mean pooling averages the final
// norm's output over all tokens of a row.
#include "internal.h"

int32_t rlhf__tf_pooling(const struct rlhf__tf *m) {
    return m->open.pooling ? m->open.pooling : m->arch.pooling;
}

// w->pf: the pooled state, f32 [n, d].
static rlhf_status pooled(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const rlhf_compute *c = m->c;
    const struct rlhf__tf_rows *r = &w->rows;
    const struct rlhf__tf_tensor *g = rlhf__tf_global(m, TF_FINAL_G);
    const int32_t d = m->arch.d;
    const uint64_t bytes = (uint64_t)r->n * (uint64_t)d * sizeof(float);
    RLHF_TRY(rlhf__tf_reserve(m, &w->pf, bytes));
    if (rlhf__tf_pooling(m) == RLHF_POOL_MEAN)
        return c->pool(c->ctx, w->pf.p, w->full_p, r->ragged.offset, r->n, d, RLHF_POOL_MEAN);
    if (!m->arch.pre_norm) return c->gather(c->ctx, w->pf.p, w->x, r->pool, r->n, d, RLHF_F32);
    RLHF_TRY(rlhf__tf_reserve(m, &w->px, bytes));
    RLHF_TRY(rlhf__tf_reserve(m, &w->pstats, (uint64_t)r->n * 2 * sizeof(float)));
    RLHF_TRY(c->gather(c->ctx, w->px.p, w->x, r->pool, r->n, d, RLHF_F32));
    return c->norm(c->ctx, w->pf.p, RLHF_F32, w->train ? w->pstats.p : NULL, w->px.p, g[0].value,
                   g[1].value, m->arch.norm_eps, r->n, d);
}

rlhf_status rlhf__tf_score(struct rlhf__tf *m, struct rlhf__tf_work *w, float *host_out) {
    const rlhf_compute *c = m->c;
    const uint32_t n = w->rows.n;
    const uint64_t wide = (uint64_t)n * (uint64_t)m->arch.d;
    const uint64_t bytes = (uint64_t)n * (uint64_t)m->open.n_labels * sizeof(float);
    const struct rlhf__tf_tensor *b = rlhf__tf_global(m, TF_SCORE_B);
    RLHF_TRY(pooled(m, w));
    rlhf_dev x = w->pf.p;
    if (m->pool) {
        RLHF_TRY(rlhf__tf_reserve(m, &w->p1, wide * sizeof(float)));
        RLHF_TRY(rlhf__tf_reserve(m, &w->p1a, wide * sizeof(float)));
        RLHF_TRY(c->linear(c->ctx, w->p1.p, RLHF_F32, 0, x, m->pool,
                           rlhf__tf_global(m, TF_POOL_B)->value, n));
        RLHF_TRY(c->act(c->ctx, w->p1a.p, w->p1.p, RLHF_ACT_RELU, RLHF_F32, wide));
        x = w->p1a.p;
    }
    RLHF_TRY(rlhf__tf_reserve(m, &w->score, bytes));
    RLHF_TRY(c->linear(c->ctx, w->score.p, RLHF_F32, 0, x, m->score, b->n ? b->value : NULL, n));
    return host_out ? c->download(c->ctx, host_out, w->score.p, bytes) : RLHF_OK;
}

// From bwd.dpf, the gradient of the pooled state, into ds.
static rlhf_status pooled_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const rlhf_compute *c = m->c;
    const struct rlhf__tf_rows *r = &w->rows;
    const struct rlhf__tf_tensor *g = rlhf__tf_global(m, TF_FINAL_G);
    const int32_t d = m->arch.d;
    rlhf_dev dpf = m->bwd.dpf.p;
    if (rlhf__tf_pooling(m) == RLHF_POOL_MEAN) {
        const uint64_t n = (uint64_t)r->total * (uint64_t)d;
        RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dfull, n * sizeof(float)));
        RLHF_TRY(
            c->pool_bwd(c->ctx, m->bwd.dfull.p, dpf, r->ragged.offset, r->n, d, RLHF_POOL_MEAN));
        if (!m->arch.pre_norm) return c->add(c->ctx, m->bwd.ds.p, m->bwd.dfull.p, RLHF_F32, n);
        return c->norm_bwd(c->ctx, m->bwd.ds.p, 1, g[0].grad, g[1].grad, m->bwd.dfull.p, RLHF_F32,
                           w->x, w->fstats.p, g[0].value, r->total, d);
    }
    if (m->arch.pre_norm) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dpx, (uint64_t)r->n * (uint64_t)d * sizeof(float)));
        RLHF_TRY(c->norm_bwd(c->ctx, m->bwd.dpx.p, 0, g[0].grad, g[1].grad, dpf, RLHF_F32, w->px.p,
                             w->pstats.p, g[0].value, r->n, d));
        dpf = m->bwd.dpx.p;
    }
    return c->scatter_add(c->ctx, m->bwd.ds.p, dpf, RLHF_F32, r->pool, r->n, d);
}

rlhf_status rlhf__tf_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const float *host_d) {
    const rlhf_compute *c = m->c;
    const uint32_t n = w->rows.n;
    const uint64_t wide = (uint64_t)n * (uint64_t)m->arch.d;
    const uint64_t bytes = (uint64_t)n * (uint64_t)m->open.n_labels * sizeof(float);
    const struct rlhf__tf_tensor *s = rlhf__tf_global(m, TF_SCORE_W);
    const struct rlhf__tf_tensor *p = rlhf__tf_global(m, TF_POOL_W);
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dscore, bytes));
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dpf, wide * sizeof(float)));
    rlhf_dev dy = m->bwd.dscore.p;
    RLHF_TRY(c->upload(c->ctx, dy, host_d, bytes));
    RLHF_TRY(
        c->linear_dw(c->ctx, s[0].grad, s[1].grad, m->pool ? w->p1a.p : w->pf.p, dy, m->score, n));
    if (m->pool) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dp1, wide * sizeof(float)));
        rlhf_dev dp1 = m->bwd.dp1.p;
        RLHF_TRY(c->linear_dx(c->ctx, dp1, RLHF_F32, 0, dy, m->score, n));
        RLHF_TRY(c->act_bwd(c->ctx, dp1, dp1, w->p1.p, RLHF_ACT_RELU, RLHF_F32, wide));
        RLHF_TRY(c->linear_dw(c->ctx, p[0].grad, p[1].grad, w->pf.p, dp1, m->pool, n));
        RLHF_TRY(c->linear_dx(c->ctx, m->bwd.dpf.p, RLHF_F32, 0, dp1, m->pool, n));
    } else {
        RLHF_TRY(c->linear_dx(c->ctx, m->bwd.dpf.p, RLHF_F32, 0, dy, m->score, n));
    }
    return pooled_bwd(m, w);
}
