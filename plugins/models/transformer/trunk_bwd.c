// transformer/trunk_bwd.c: the layers backward, from d(loss)/d(residual stream) to gradients; each
// layer reads like its forward in trunk.c from the last line to the first.
//
// ds, the gradient of the stream, is f32 [T, d]; products take it in the act dtype. Pre-norm adds
// each block's share to ds in place; post-norm passes through a norm between blocks, so ds and a
// spare buffer change places.
#include "internal.h"

struct pass {
    struct rlhf__tf *m;
    const struct rlhf__tf_work *w;
    const rlhf_compute *c;
    struct rlhf__tf_widths n;
    int32_t layer;
    uint32_t rows;
    rlhf_dev ds, spare;
};

static rlhf_status reserve(struct rlhf__tf *m, const struct rlhf__tf_work *w) {
    const struct rlhf__tf_widths n = rlhf__tf_widths(&m->arch);
    const uint64_t rows = w->rows.total, act = rows * rlhf__tf_esz(m), d = (uint64_t)n.d;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dinner, act * (uint64_t)n.inner));
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dqkv, act * (uint64_t)n.qkv));
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.datt, act * (uint64_t)n.q));
    if (m->arch.gated) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dfc, act * (uint64_t)n.fc));
    if (m->arch.pre_norm) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dh, act * d));
    if (m->dtype != RLHF_F32) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dy, act * d));
    if (m->arch.pre_norm) return RLHF_OK;
    return rlhf__tf_reserve(m, &m->bwd.ds2, rows * sizeof(float) * d);
}

// ---- steps ----

// *dy = ds in the act dtype.
static rlhf_status lower(const struct pass *p, rlhf_dev *dy) {
    *dy = p->ds;
    if (p->m->dtype == RLHF_F32) return RLHF_OK;
    *dy = p->m->bwd.dy.p;
    return p->c->convert(p->c->ctx, *dy, p->m->dtype, p->ds, RLHF_F32,
                         (uint64_t)p->rows * (uint64_t)p->n.d);
}

// Gradients of a product's weight and bias, from its input x and dy in the act dtype.
static rlhf_status linear_dw(const struct pass *p, rlhf_dev x, rlhf_dev dy, const rlhf_weight *w,
                             int32_t slot) {
    const struct rlhf__tf_tensor *t = rlhf__tf_layer(p->m, p->layer, slot);
    return p->c->linear_dw(p->c->ctx, t[0].grad, t[1].grad, x, dy, w, p->rows);
}

// The same, and dx = dy W^T in the act dtype.
static rlhf_status linear_bwd(const struct pass *p, rlhf_dev dx, rlhf_dev x, rlhf_dev dy,
                              const rlhf_weight *w, int32_t slot) {
    RLHF_TRY(linear_dw(p, x, dy, w, slot));
    return p->c->linear_dx(p->c->ctx, dx, p->m->dtype, 0, dy, w, p->rows);
}

// The same, where the product read the stream: ds += dy W^T.
static rlhf_status linear_bwd_add(const struct pass *p, rlhf_dev x, rlhf_dev dy,
                                  const rlhf_weight *w, int32_t slot) {
    RLHF_TRY(linear_dw(p, x, dy, w, slot));
    return p->c->linear_dx(p->c->ctx, p->ds, RLHF_F32, 1, dy, w, p->rows);
}

// From d = d(activation's output), to *dx = d(x): in place, or elsewhere where it is wider.
static rlhf_status act_bwd(const struct pass *p, rlhf_dev *dx, rlhf_dev d, rlhf_dev x) {
    const struct rlhf__tf_arch *a = &p->m->arch;
    *dx = a->gated ? p->m->bwd.dfc.p : d;
    if (a->gated)
        return p->c->gate_bwd(p->c->ctx, *dx, d, x, a->act, p->m->dtype, p->rows, p->n.inner);
    return p->c->act_bwd(p->c->ctx, d, d, x, a->act, p->m->dtype,
                         (uint64_t)p->rows * (uint64_t)p->n.inner);
}

static rlhf_status attend_bwd(const struct pass *p, const struct rlhf__tf_acts *a, rlhf_dev dqkv,
                              rlhf_dev datt) {
    const rlhf_attn g = rlhf__tf_attn_geometry(p->m, p->layer, 0);
    const struct rlhf__tf_qkv s = rlhf__tf_qkv(p->m, a->qkv), d = rlhf__tf_qkv(p->m, dqkv);
    RLHF_TRY(p->c->attention_bwd(p->c->ctx, &g, &p->w->rows.ragged, d.q, d.k, d.v, datt, a->att,
                                 a->lse, s.q, s.k, s.v));
    if (!p->m->arch.rotary.frequency) return RLHF_OK;
    const rlhf_rope turn = rlhf__tf_rope_args(p->m, &p->w->rows, p->layer, a->raw, a->raw_stats);
    return p->c->rope_bwd(p->c->ctx, &turn, dqkv, rlhf__tf_layer(p->m, p->layer, TF_QN_G)->grad,
                          rlhf__tf_layer(p->m, p->layer, TF_KN_G)->grad, p->rows);
}

// Pre-norm: ds += back through the norm that made a product's input from the stream x.
static rlhf_status norm_bwd_add(const struct pass *p, rlhf_dev dh, rlhf_dev x, rlhf_dev stats,
                                int32_t slot) {
    return rlhf__tf_norm_bwd(p->m, rlhf__tf_layer(p->m, p->layer, slot), p->ds, 1, dh, p->m->dtype,
                             x, stats, p->rows);
}

// Post-norm: ds = back through the norm of the sum x, with the tensors at gamma.
static rlhf_status norm_bwd(struct pass *p, rlhf_dev x, rlhf_dev stats,
                            const struct rlhf__tf_tensor *gamma) {
    rlhf_dev dx = p->spare;
    RLHF_TRY(rlhf__tf_norm_bwd(p->m, gamma, dx, 0, p->ds, RLHF_F32, x, stats, p->rows));
    p->spare = p->ds;
    p->ds = dx;
    return RLHF_OK;
}

// ---- layers ----

static rlhf_status pre_norm_layer_bwd(const struct pass *p, const struct rlhf__tf_acts *a,
                                      const struct rlhf__tf_layer_weights *w) {
    const struct rlhf__tf_scratch *b = &p->m->bwd;
    rlhf_dev dy, dfc;
    RLHF_TRY(lower(p, &dy));
    RLHF_TRY(linear_bwd(p, b->dinner.p, a->ac, dy, w->out, TF_OUT_W));
    RLHF_TRY(act_bwd(p, &dfc, b->dinner.p, a->fc));
    RLHF_TRY(linear_bwd(p, b->dh.p, a->h2, dfc, w->fc, TF_FC_W));
    RLHF_TRY(norm_bwd_add(p, b->dh.p, a->mid, a->stats2, TF_N2_G));
    RLHF_TRY(lower(p, &dy));
    RLHF_TRY(linear_bwd(p, b->datt.p, a->att, dy, w->proj, TF_PROJ_W));
    RLHF_TRY(attend_bwd(p, a, b->dqkv.p, b->datt.p));
    RLHF_TRY(linear_bwd(p, b->dh.p, a->h1, b->dqkv.p, w->qkv, TF_QKV_W));
    return norm_bwd_add(p, b->dh.p, a->in, a->stats1, TF_N1_G);
}

static rlhf_status post_norm_layer_bwd(struct pass *p, const struct rlhf__tf_acts *a,
                                       const struct rlhf__tf_layer_weights *w) {
    const struct rlhf__tf_scratch *b = &p->m->bwd;
    rlhf_dev dy, dfc;
    RLHF_TRY(norm_bwd(p, a->mid, a->stats2, rlhf__tf_layer(p->m, p->layer, TF_N2_G)));
    RLHF_TRY(lower(p, &dy));
    RLHF_TRY(linear_bwd(p, b->dinner.p, a->ac, dy, w->out, TF_OUT_W));
    RLHF_TRY(act_bwd(p, &dfc, b->dinner.p, a->fc));
    RLHF_TRY(linear_bwd_add(p, a->h2, dfc, w->fc, TF_FC_W));
    RLHF_TRY(norm_bwd(p, a->sum, a->stats1, rlhf__tf_layer(p->m, p->layer, TF_N1_G)));
    RLHF_TRY(lower(p, &dy));
    RLHF_TRY(linear_bwd(p, b->datt.p, a->att, dy, w->proj, TF_PROJ_W));
    RLHF_TRY(attend_bwd(p, a, b->dqkv.p, b->datt.p));
    return linear_bwd_add(p, a->h1, b->dqkv.p, w->qkv, TF_QKV_W);
}

rlhf_status rlhf__tf_trunk_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    RLHF_TRY(reserve(m, w));
    struct pass p = {m,           w,           m->c, rlhf__tf_widths(&m->arch), 0, w->rows.total,
                     m->bwd.ds.p, m->bwd.ds2.p};
    for (p.layer = m->arch.n_layer - 1; p.layer >= 0; p.layer--) {
        const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, p.layer);
        if (m->open.recompute) RLHF_TRY(rlhf__tf_layer_again(m, w, p.layer));
        RLHF_TRY(m->arch.pre_norm ? pre_norm_layer_bwd(&p, &a, &m->w[p.layer])
                                  : post_norm_layer_bwd(&p, &a, &m->w[p.layer]));
    }
    if (!m->arch.pre_norm)
        RLHF_TRY(norm_bwd(&p, w->emb.p, w->emb_stats.p, rlhf__tf_global(m, TF_EMB_G)));
    const int32_t turned = m->arch.rotary.frequency != NULL;
    return m->c->embed_bwd(m->c->ctx, rlhf__tf_global(m, TF_WTE)->grad,
                           rlhf__tf_global(m, TF_WPE)->grad, p.ds, w->rows.ids,
                           turned ? NULL : w->rows.pos, p.rows, p.n.d, m->arch.n_vocab,
                           turned ? 0 : m->arch.n_ctx);
}
