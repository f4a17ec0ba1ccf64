// transformer/weights.c: the matrices in the device's own layouts, made from the f32 parameters.
//
// Trunk and LM head multiply in the act dtype; value and score heads in f32, since they are small
// and their outputs are regressed on. The LM head is packed on first use: a classifier never has
// it.
#include "internal.h"

static rlhf_status make(struct rlhf__tf *m, int32_t k, int32_t n, int32_t dtype, int32_t out_in,
                        rlhf_weight **out) {
    const uint32_t flags = (out_in ? (uint32_t)RLHF_WEIGHT_OUT_IN : 0u) |
                           (m->open.trainable ? (uint32_t)RLHF_WEIGHT_BACKWARD : 0u);
    return m->c->weight_create(m->c->ctx, k, n, dtype, flags, out);
}

static rlhf_status make_heads(struct rlhf__tf *m) {
    const int32_t d = m->arch.d, labels = m->open.n_labels;
    if (labels > 0) {
        if (m->arch.score_hidden) RLHF_TRY(make(m, d, d, RLHF_F32, 1, &m->pool));
        RLHF_TRY(make(m, d, labels, RLHF_F32, 1, &m->score));
    }
    if (m->open.value_kind == RLHF_VALUE_MLP) {
        RLHF_TRY(make(m, d, 4 * d, RLHF_F32, 1, &m->v1));
        RLHF_TRY(make(m, 4 * d, 1, RLHF_F32, 1, &m->v2));
    } else if (m->open.value_kind == RLHF_VALUE_LINEAR) {
        RLHF_TRY(make(m, d, 1, RLHF_F32, 1, &m->v2));
    }
    return RLHF_OK;
}

rlhf_status rlhf__tf_weights_create(struct rlhf__tf *m) {
    const struct rlhf__tf_arch *a = &m->arch;
    const struct rlhf__tf_widths n = rlhf__tf_widths(a);
    m->w = m->host->alloc(m->host, (uint64_t)a->n_layer * sizeof *m->w);
    if (!m->w) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the weight list");
    for (int32_t l = 0; l < a->n_layer; l++) {
        RLHF_TRY(make(m, n.d, n.qkv, m->dtype, a->out_in, &m->w[l].qkv));
        RLHF_TRY(make(m, n.q, n.d, m->dtype, a->out_in, &m->w[l].proj));
        RLHF_TRY(make(m, n.d, n.fc, m->dtype, a->out_in, &m->w[l].fc));
        RLHF_TRY(make(m, n.inner, n.d, m->dtype, a->out_in, &m->w[l].out));
    }
    return make_heads(m);
}

void rlhf__tf_weights_destroy(struct rlhf__tf *m) {
    rlhf_weight *heads[] = {m->lm, m->pool, m->score, m->v1, m->v2};
    for (int32_t l = 0; m->w && l < m->arch.n_layer; l++) {
        m->c->weight_destroy(m->c->ctx, m->w[l].qkv);
        m->c->weight_destroy(m->c->ctx, m->w[l].proj);
        m->c->weight_destroy(m->c->ctx, m->w[l].fc);
        m->c->weight_destroy(m->c->ctx, m->w[l].out);
    }
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        m->c->weight_destroy(m->c->ctx, heads[i]);
    m->host->free(m->host, m->w);
}

static rlhf_status pack(struct rlhf__tf *m, rlhf_weight *w, const struct rlhf__tf_tensor *t) {
    return w ? m->c->weight_pack(m->c->ctx, w, t->value) : RLHF_OK;
}

rlhf_status rlhf__tf_weights_pack(struct rlhf__tf *m) {
    for (int32_t l = 0; l < m->arch.n_layer; l++) {
        RLHF_TRY(pack(m, m->w[l].qkv, rlhf__tf_layer(m, l, TF_QKV_W)));
        RLHF_TRY(pack(m, m->w[l].proj, rlhf__tf_layer(m, l, TF_PROJ_W)));
        RLHF_TRY(pack(m, m->w[l].fc, rlhf__tf_layer(m, l, TF_FC_W)));
        RLHF_TRY(pack(m, m->w[l].out, rlhf__tf_layer(m, l, TF_OUT_W)));
    }
    RLHF_TRY(pack(m, m->pool, rlhf__tf_global(m, TF_POOL_W)));
    RLHF_TRY(pack(m, m->score, rlhf__tf_global(m, TF_SCORE_W)));
    RLHF_TRY(pack(m, m->v1, rlhf__tf_global(m, TF_V1_W)));
    RLHF_TRY(pack(m, m->v2, rlhf__tf_global(m, TF_V2_W)));
    m->lm_fresh = 0;
    return RLHF_OK;
}

rlhf_status rlhf__tf_lm_ready(struct rlhf__tf *m) {
    if (m->lm_fresh) return RLHF_OK;
    if (!m->lm) RLHF_TRY(make(m, m->arch.d, rlhf__tf_outputs(m), m->dtype, 1, &m->lm));
    RLHF_TRY(pack(m, m->lm, rlhf__tf_global(m, m->arch.tied ? TF_WTE : TF_LM)));
    m->lm_fresh = 1;
    return RLHF_OK;
}
