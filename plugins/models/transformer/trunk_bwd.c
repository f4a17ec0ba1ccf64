// transformer/trunk_bwd.c: the layers backward, from d(loss)/d(residual stream) to gradients.
//
// The running gradient ds is f32 [total, d]; products take it in the act dtype. Pre-norm adds each
// block's share to ds in place; post-norm passes through a norm between blocks, so ds and ds2
// take turns. Indices of saved buffers are those of trunk.c.
#include "internal.h"

struct pass {
    struct rlhf__tf *m;
    struct rlhf__tf_work *w;
    const rlhf_compute *c;
    uint64_t total, d, inner, esz;
    rlhf_dev ds, spare;
    int32_t layer, reserved;
};

static rlhf_dev part(const struct rlhf__tf_buf *b, int32_t i, uint64_t bytes) {
    return rlhf_dev_at(b->p, (uint64_t)i * bytes);
}

static rlhf_status reserve(const struct pass *p) {
    struct rlhf__tf *m = p->m;
    const uint64_t row = p->total * p->d;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dinner, p->total * p->inner * p->esz));
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dqkv, 3 * row * p->esz));
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dh, row * p->esz));
    if (m->dtype != RLHF_F32) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dy, row * p->esz));
    return m->arch.pre_norm ? RLHF_OK : rlhf__tf_reserve(m, &m->bwd.ds2, row * sizeof(float));
}

// ds in the act dtype.
static rlhf_status ds_act(const struct pass *p, rlhf_dev *out) {
    *out = p->ds;
    if (p->m->dtype == RLHF_F32) return RLHF_OK;
    *out = p->m->bwd.dy.p;
    return p->c->convert(p->c->ctx, *out, p->m->dtype, p->ds, RLHF_F32, p->total * p->d);
}

static rlhf_status norm_bwd(const struct pass *p, rlhf_dev dx, int32_t accumulate, rlhf_dev dy,
                            int32_t dy_dtype, int32_t s_index, int32_t stats_index,
                            const struct rlhf__tf_tensor *gamma) {
    const uint64_t row = p->total * p->d * sizeof(float);
    return p->c->norm_bwd(p->c->ctx, dx, accumulate, gamma[0].grad, gamma[1].grad, dy, dy_dtype,
                          part(&p->w->s, s_index, row),
                          part(&p->w->stats, stats_index, p->total * 2 * sizeof(float)),
                          gamma[0].value, (uint32_t)p->total, (int32_t)p->d);
}

// Post-norm: back through the norm that closes block i; ds and the spare change places.
static rlhf_status block_out_bwd(struct pass *p, int32_t i) {
    rlhf_dev dx = p->spare;
    if (p->m->arch.pre_norm) return RLHF_OK;
    RLHF_TRY(norm_bwd(p, dx, 0, p->ds, RLHF_F32, i + 1, i + 1,
                      rlhf__tf_layer(p->m, p->layer, i & 1 ? TF_N2_G : TF_N1_G)));
    p->spare = p->ds;
    p->ds = dx;
    return RLHF_OK;
}

// Back through the product that opens block i (input h, weight w, dy in the act dtype) into ds.
static rlhf_status block_in_bwd(const struct pass *p, int32_t i, rlhf_dev dy, const rlhf_weight *w,
                                int32_t slot) {
    struct rlhf__tf *m = p->m;
    const struct rlhf__tf_tensor *t = rlhf__tf_layer(m, p->layer, slot);
    RLHF_TRY(p->c->linear_dw(p->c->ctx, t[0].grad, t[1].grad,
                             part(&p->w->h, i, p->total * p->d * p->esz), dy, w,
                             (uint32_t)p->total));
    if (!m->arch.pre_norm)
        return p->c->linear_dx(p->c->ctx, p->ds, RLHF_F32, 1, dy, w, (uint32_t)p->total);
    RLHF_TRY(p->c->linear_dx(p->c->ctx, m->bwd.dh.p, m->dtype, 0, dy, w, (uint32_t)p->total));
    return norm_bwd(p, p->ds, 1, m->bwd.dh.p, m->dtype, i, i,
                    rlhf__tf_layer(m, p->layer, i & 1 ? TF_N2_G : TF_N1_G));
}

// Back through the product that closes a block: gradients of its weight and of its input x.
static rlhf_status product_bwd(const struct pass *p, rlhf_dev dx, rlhf_dev x, const rlhf_weight *w,
                               int32_t slot) {
    const struct rlhf__tf_tensor *t = rlhf__tf_layer(p->m, p->layer, slot);
    rlhf_dev dy;
    RLHF_TRY(ds_act(p, &dy));
    RLHF_TRY(p->c->linear_dw(p->c->ctx, t[0].grad, t[1].grad, x, dy, w, (uint32_t)p->total));
    return p->c->linear_dx(p->c->ctx, dx, p->m->dtype, 0, dy, w, (uint32_t)p->total);
}

static rlhf_status mlp_bwd(struct pass *p, int32_t l) {
    struct rlhf__tf *m = p->m;
    const uint64_t wide = p->total * p->inner * p->esz;
    rlhf_dev d = m->bwd.dinner.p;
    RLHF_TRY(block_out_bwd(p, 2 * l + 1));
    RLHF_TRY(product_bwd(p, d, part(&p->w->ac, l, wide), m->w[l].out, TF_OUT_W));
    RLHF_TRY(p->c->act_bwd(p->c->ctx, d, d, part(&p->w->fc, l, wide), m->arch.act, m->dtype,
                           p->total * p->inner));
    return block_in_bwd(p, 2 * l + 1, d, m->w[l].fc, TF_FC_W);
}

static rlhf_status attention_bwd(struct pass *p, int32_t l) {
    struct rlhf__tf *m = p->m;
    const uint64_t row = p->total * p->d * p->esz, step = p->d * p->esz;
    rlhf_dev qkv = part(&p->w->qkv, l, 3 * row), att = part(&p->w->att, l, row);
    rlhf_dev dqkv = m->bwd.dqkv.p, datt = m->bwd.dh.p;
    const rlhf_attn g = rlhf__tf_attn_geometry(m, l, 0);
    RLHF_TRY(block_out_bwd(p, 2 * l));
    RLHF_TRY(product_bwd(p, datt, att, m->w[l].proj, TF_PROJ_W));
    RLHF_TRY(p->c->attention_bwd(
        p->c->ctx, &g, &p->w->rows.ragged, dqkv, rlhf_dev_at(dqkv, step),
        rlhf_dev_at(dqkv, 2 * step), datt, att,
        part(&p->w->lse, l, p->total * (uint64_t)m->arch.n_head * sizeof(float)), qkv,
        rlhf_dev_at(qkv, step), rlhf_dev_at(qkv, 2 * step)));
    return block_in_bwd(p, 2 * l, dqkv, m->w[l].qkv, TF_QKV_W);
}

rlhf_status rlhf__tf_trunk_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    struct pass p = {m,
                     w,
                     m->c,
                     w->rows.total,
                     (uint64_t)m->arch.d,
                     (uint64_t)m->arch.d_inner,
                     rlhf__tf_esz(m),
                     m->bwd.ds.p,
                     NULL,
                     0,
                     0};
    RLHF_TRY(reserve(&p));
    p.spare = m->bwd.ds2.p;
    for (int32_t l = m->arch.n_layer - 1; l >= 0; l--) {
        p.layer = l;
        RLHF_TRY(mlp_bwd(&p, l));
        RLHF_TRY(attention_bwd(&p, l));
    }
    if (!m->arch.pre_norm) {
        RLHF_TRY(norm_bwd(&p, p.spare, 0, p.ds, RLHF_F32, 0, 0, rlhf__tf_global(m, TF_EMB_G)));
        p.ds = p.spare;
    }
    return m->c->embed_bwd(m->c->ctx, rlhf__tf_global(m, TF_WTE)->grad,
                           rlhf__tf_global(m, TF_WPE)->grad, p.ds, w->rows.ids, w->rows.pos,
                           w->rows.total, m->arch.d, m->arch.n_vocab, m->arch.n_ctx);
}
