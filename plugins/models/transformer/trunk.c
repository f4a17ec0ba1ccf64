// transformer/trunk.c: embedding and layers, forward. One function serves training, inference and
// cached generation, so all three issue the same table operations on the same values.
//
// Residual stream s: f32 [total, d]. Pre-norm keeps s before and after attention of each layer
// (index 2l and 2l + 1; the end is 2 n_layer); post-norm keeps the sum and its norm (index 0 the
// embeddings, 2l + 1 and 2l + 2 the inputs of layer l's norms, 2 n_layer + 1 the end). Without
// training, pre-norm uses one buffer in place and post-norm two in turn.
#include "internal.h"

struct pass {
    struct rlhf__tf *m;
    struct rlhf__tf_work *w;
    const rlhf_compute *c;
    rlhf_gen *gen;
    uint64_t total, d, inner, esz;
    int32_t train, layer;
};

static rlhf_dev part(const struct rlhf__tf_buf *b, uint64_t i, uint64_t bytes) {
    return rlhf_dev_at(b->p, i * bytes);
}

static rlhf_dev s_at(const struct pass *p, int32_t i) {
    const int32_t j = p->train ? i : p->m->arch.pre_norm ? 0 : i & 1;
    return part(&p->w->s, (uint64_t)j, p->total * p->d * sizeof(float));
}

static rlhf_dev h_at(const struct pass *p, int32_t i) {
    return part(&p->w->h, (uint64_t)(p->train ? i : 0), p->total * p->d * p->esz);
}

static rlhf_dev stats_at(const struct pass *p, int32_t i) {
    return p->train ? part(&p->w->stats, (uint64_t)i, p->total * 2 * sizeof(float)) : NULL;
}

static rlhf_status reserve(const struct pass *p) {
    struct rlhf__tf *m = p->m;
    struct rlhf__tf_work *w = p->w;
    const uint64_t layers = p->train ? (uint64_t)m->arch.n_layer : 1;
    const uint64_t n_s = p->train ? 2 * layers + 2 : 2;
    const uint64_t row_f = p->total * p->d * sizeof(float), row_h = p->total * p->d * p->esz;
    RLHF_TRY(rlhf__tf_reserve(m, &w->s, (m->arch.pre_norm && !p->train ? 1 : n_s) * row_f));
    RLHF_TRY(rlhf__tf_reserve(m, &w->h, (p->train ? 2 * layers : 1) * row_h));
    RLHF_TRY(rlhf__tf_reserve(m, &w->qkv, layers * 3 * row_h));
    RLHF_TRY(rlhf__tf_reserve(m, &w->att, layers * row_h));
    RLHF_TRY(rlhf__tf_reserve(m, &w->fc, layers * p->total * p->inner * p->esz));
    if (!p->train) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &w->ac, layers * p->total * p->inner * p->esz));
    RLHF_TRY(rlhf__tf_reserve(m, &w->stats, (2 * layers + 1) * p->total * 2 * sizeof(float)));
    return rlhf__tf_reserve(m, &w->lse,
                            layers * p->total * (uint64_t)m->arch.n_head * sizeof(float));
}

// out = LayerNorm(s) with the pair of slots gamma, gamma + 1.
static rlhf_status norm(const struct pass *p, rlhf_dev out, int32_t dtype, rlhf_dev stats,
                        rlhf_dev x, const struct rlhf__tf_tensor *gamma) {
    return p->c->norm(p->c->ctx, out, dtype, stats, x, gamma[0].value, gamma[1].value,
                      p->m->arch.norm_eps, (uint32_t)p->total, (int32_t)p->d);
}

// The input of the products of block i (2l: attention, 2l + 1: MLP) of act dtype, and the f32 sum
// the block's output is added to. Pre-norm: h = norm(s), the sum goes on in a copy. Post-norm: s is
// normalised already.
static rlhf_status block_in(const struct pass *p, int32_t i, rlhf_dev *h, rlhf_dev *sum) {
    struct rlhf__tf *m = p->m;
    const uint64_t n = p->total * p->d;
    *h = h_at(p, i);
    *sum = s_at(p, i + 1);
    if (m->arch.pre_norm) {
        RLHF_TRY(norm(p, *h, m->dtype, stats_at(p, i), s_at(p, i),
                      rlhf__tf_layer(m, p->layer, i & 1 ? TF_N2_G : TF_N1_G)));
        if (!p->train) return RLHF_OK;
        return p->c->copy(p->c->ctx, *sum, s_at(p, i), n * sizeof(float));
    }
    if (m->dtype == RLHF_F32 && !p->train) { // read before the block adds to it
        *h = *sum;
        return RLHF_OK;
    }
    return p->c->convert(p->c->ctx, *h, m->dtype, *sum, RLHF_F32, n);
}

// Post-norm: the norm after block i's sum.
static rlhf_status block_out(const struct pass *p, int32_t i) {
    struct rlhf__tf *m = p->m;
    if (m->arch.pre_norm) return RLHF_OK;
    return norm(p, s_at(p, i + 2), RLHF_F32, stats_at(p, i + 1), s_at(p, i + 1),
                rlhf__tf_layer(m, p->layer, i & 1 ? TF_N2_G : TF_N1_G));
}

static rlhf_status product(const struct pass *p, rlhf_dev out, int32_t to_sum, rlhf_dev x,
                           const rlhf_weight *w, int32_t bias_slot) {
    const struct rlhf__tf_tensor *b = rlhf__tf_layer(p->m, p->layer, bias_slot);
    return p->c->linear(p->c->ctx, out, to_sum ? RLHF_F32 : p->m->dtype, to_sum, x, w,
                        b->n ? b->value : NULL, (uint32_t)p->total);
}

rlhf_attn rlhf__tf_attn_geometry(const struct rlhf__tf *m, int32_t layer, int32_t cached) {
    const struct rlhf__tf_arch *a = &m->arch;
    const rlhf_attn g = {a->n_head,
                         a->d / a->n_head,
                         a->causal,
                         m->dtype,
                         3 * (int64_t)a->d,
                         cached ? a->d : 3 * (int64_t)a->d,
                         a->d,
                         a->attn_scale / (a->scale_by_layer ? layer + 1.0 : 1.0)};
    return g;
}

static rlhf_status attend(const struct pass *p, rlhf_dev qkv, rlhf_dev att) {
    struct rlhf__tf *m = p->m;
    const rlhf_ragged *r = &p->w->rows.ragged;
    const uint64_t row = p->d * p->esz;
    rlhf_dev k = rlhf_dev_at(qkv, row), v = rlhf_dev_at(qkv, 2 * row), lse = NULL;
    const rlhf_attn g = rlhf__tf_attn_geometry(m, p->layer, p->gen != NULL);
    if (p->gen) {
        const uint64_t cache = (uint64_t)p->gen->n_slots * p->gen->max_len * row;
        rlhf_dev kc = part(&p->gen->k, (uint64_t)p->layer, cache);
        rlhf_dev vc = part(&p->gen->v, (uint64_t)p->layer, cache);
        RLHF_TRY(p->c->kv_store(p->c->ctx, kc, vc, k, v, g.q_stride, r, (int32_t)p->d, m->dtype));
        k = kc;
        v = vc;
    }
    if (p->train)
        lse = part(&p->w->lse, (uint64_t)p->layer,
                   p->total * (uint64_t)m->arch.n_head * sizeof(float));
    return p->c->attention(p->c->ctx, &g, r, att, lse, qkv, k, v);
}

static rlhf_status layer_forward(struct pass *p, int32_t l) {
    const struct rlhf__tf_layer_weights *w = &p->m->w[l];
    const uint64_t i = p->train ? (uint64_t)l : 0, row = p->total * p->d * p->esz;
    const uint64_t wide = p->total * p->inner * p->esz;
    rlhf_dev qkv = part(&p->w->qkv, i, 3 * row), att = part(&p->w->att, i, row);
    rlhf_dev fc = part(&p->w->fc, i, wide), ac = p->train ? part(&p->w->ac, i, wide) : fc;
    rlhf_dev h, sum;
    p->layer = l;
    RLHF_TRY(block_in(p, 2 * l, &h, &sum));
    RLHF_TRY(product(p, qkv, 0, h, w->qkv, TF_QKV_B));
    RLHF_TRY(attend(p, qkv, att));
    RLHF_TRY(product(p, sum, 1, att, w->proj, TF_PROJ_B));
    RLHF_TRY(block_out(p, 2 * l));
    RLHF_TRY(block_in(p, 2 * l + 1, &h, &sum));
    RLHF_TRY(product(p, fc, 0, h, w->fc, TF_FC_B));
    RLHF_TRY(p->c->act(p->c->ctx, ac, fc, p->m->arch.act, p->m->dtype, p->total * p->inner));
    RLHF_TRY(product(p, sum, 1, ac, w->out, TF_OUT_B));
    return block_out(p, 2 * l + 1);
}

rlhf_status rlhf__tf_trunk(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_gen *gen) {
    struct pass p = {m,
                     w,
                     m->c,
                     gen,
                     w->rows.total,
                     (uint64_t)m->arch.d,
                     (uint64_t)m->arch.d_inner,
                     rlhf__tf_esz(m),
                     w->train,
                     0};
    RLHF_TRY(reserve(&p));
    RLHF_TRY(m->c->embed(m->c->ctx, s_at(&p, 0), w->rows.ids, w->rows.pos,
                         rlhf__tf_global(m, TF_WTE)->value, rlhf__tf_global(m, TF_WPE)->value,
                         w->rows.total, m->arch.d));
    if (!m->arch.pre_norm)
        RLHF_TRY(norm(&p, s_at(&p, 1), RLHF_F32, stats_at(&p, 0), s_at(&p, 0),
                      rlhf__tf_global(m, TF_EMB_G)));
    for (int32_t l = 0; l < m->arch.n_layer; l++)
        RLHF_TRY(layer_forward(&p, l));
    w->x = s_at(&p, m->arch.pre_norm ? 2 * m->arch.n_layer : 2 * m->arch.n_layer + 1);
    return RLHF_OK;
}
