// transformer/weights.c: packs the f32 parameters into the matrix layouts of the device.
//
// The matrix products of the trunk and the LM head are in the act dtype. The value head and the
// score head are in f32, which costs little because they are small. The LM head is packed on first
// use, because classifiers do not need it.
#include "internal.h"

static rlhf_status make(struct rlhf__tf *m, int32_t k, int32_t n, int32_t dtype, int32_t out_in,
                        rlhf_weight **out) {
    const uint32_t flags = (out_in ? (uint32_t)RLHF_WEIGHT_OUT_IN : 0u) |
                           (m->open.trainable ? (uint32_t)RLHF_WEIGHT_BACKWARD : 0u);
    return m->c->weight_create(m->c->ctx, k, n, dtype, flags, out);
}

// Makes the weight of a slot of the trunk.
static rlhf_status make_slot(struct rlhf__tf *m, int32_t layer, int32_t slot, int32_t k, int32_t n,
                             rlhf_weight **out) {
    const struct rlhf__tf_parts *parts = rlhf__tf_parts(m, layer, slot);
    if (!parts) return make(m, k, n, m->dtype, layer < 0 || m->arch.out_in, out);
    const rlhf_quantised q = {.size = sizeof q,
                              .k = k,
                              .n = n,
                              .dtype = m->dtype,
                              .flags = (uint32_t)RLHF_WEIGHT_OUT_IN |
                                       (m->open.trainable ? (uint32_t)RLHF_WEIGHT_BACKWARD : 0u),
                              .n_parts = (uint32_t)parts->n,
                              .format = parts->format,
                              .count = parts->count};
    return m->c->weight_create_quantised(m->c->ctx, &q, out);
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

static rlhf_status make_trunk(struct rlhf__tf *m) {
    const struct rlhf_tf_arch *a = &m->arch;
    if (m->base) {
        m->w = m->base->w;
        return RLHF_OK;
    }
    m->w = m->host->alloc(m->host, (uint64_t)a->n_layer * sizeof *m->w);
    if (!m->w) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the weight list");
    for (int32_t l = 0; l < a->n_layer; l++)
        for (int32_t i = 0; i < TF_N_SITE; i++) {
            const enum rlhf__tf_site site = (enum rlhf__tf_site)i;
            RLHF_TRY(make_slot(m, l, rlhf__tf_site_slot(site), rlhf__tf_site_inputs(m, l, site),
                               rlhf__tf_site_outputs(m, l, site), &m->w[l].of[site]));
        }
    return RLHF_OK;
}

// The slot of the values that the LM head multiplies by.
static int32_t lm_slot(const struct rlhf__tf *m) { return m->arch.tied ? RLHF_TF_WTE : RLHF_TF_LM; }

// Makes the token embedding and the LM head, if they stay quantised. One weight is both if they are
// tied.
static rlhf_status make_tables(struct rlhf__tf *m) {
    const int32_t tied = m->arch.tied && rlhf__tf_has_lm(m), d = m->arch.d;
    if (m->base) {
        m->table = m->base->table;
        return RLHF_OK;
    }
    if (rlhf__tf_has_lm(m) && rlhf__tf_parts(m, -1, lm_slot(m))) {
        RLHF_TRY(make_slot(m, -1, lm_slot(m), d, rlhf__tf_outputs(m), &m->lm));
        m->lm_fresh = 1;
    }
    if (!rlhf__tf_parts(m, -1, RLHF_TF_WTE)) return RLHF_OK;
    if (!tied) return make_slot(m, -1, RLHF_TF_WTE, d, m->arch.n_vocab, &m->table);
    m->table = m->lm;
    return RLHF_OK;
}

rlhf_status rlhf__tf_weights_open(struct rlhf__tf *m) {
    RLHF_TRY(make_trunk(m));
    RLHF_TRY(make_tables(m));
    RLHF_TRY(rlhf__tf_adapter_weights(m));
    return make_heads(m);
}

void rlhf__tf_weights_close(struct rlhf__tf *m) {
    rlhf_weight *heads[] = {m->pool, m->score, m->v1, m->v2};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        m->c->weight_destroy(m->c->ctx, heads[i]);
    rlhf__tf_adapter_close(m);
    if (m->base) return;
    for (int32_t l = 0; m->w && l < m->arch.n_layer; l++)
        for (int32_t s = 0; s < TF_N_SITE; s++)
            m->c->weight_destroy(m->c->ctx, m->w[l].of[s]);
    if (m->table != m->lm) m->c->weight_destroy(m->c->ctx, m->table);
    m->c->weight_destroy(m->c->ctx, m->lm);
    m->host->free(m->host, m->w);
}

// Does nothing if the values have been packed and freed already.
static rlhf_status pack(struct rlhf__tf *m, rlhf_weight *w, const struct rlhf__tf_tensor *t) {
    return w && t->value ? m->c->weight_pack(m->c->ctx, w, t->value) : RLHF_OK;
}

static rlhf_status pack_site(struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site) {
    return pack(m, m->w[layer].of[site], rlhf__tf_layer(m, layer, rlhf__tf_site_slot(site)));
}

static rlhf_status pack_trunk(struct rlhf__tf *m) {
    for (int32_t l = 0; l < m->arch.n_layer; l++)
        for (int32_t s = 0; s < TF_N_SITE; s++)
            RLHF_TRY(pack_site(m, l, (enum rlhf__tf_site)s));
    if (rlhf__tf_global(m, lm_slot(m))->place == TF_STAYS) m->lm_fresh = 0;
    return RLHF_OK;
}

static rlhf_status pack_heads(struct rlhf__tf *m) {
    RLHF_TRY(pack(m, m->pool, rlhf__tf_global(m, RLHF_TF_POOL_W)));
    RLHF_TRY(pack(m, m->score, rlhf__tf_global(m, RLHF_TF_SCORE_W)));
    RLHF_TRY(pack(m, m->v1, rlhf__tf_global(m, RLHF_TF_V1_W)));
    return pack(m, m->v2, rlhf__tf_global(m, RLHF_TF_V2_W));
}

rlhf_status rlhf__tf_weights_pack_slot(struct rlhf__tf *m, int32_t layer, int32_t slot) {
    if (layer >= 0) return pack_site(m, layer, (enum rlhf__tf_site)rlhf__tf_site_of(slot));
    return slot == RLHF_TF_LM ? rlhf__tf_lm_ready(m) : pack_heads(m);
}

rlhf_status rlhf__tf_weights_pack(struct rlhf__tf *m) {
    if (!m->base && !m->settled) RLHF_TRY(pack_trunk(m));
    RLHF_TRY(pack_heads(m));
    RLHF_TRY(rlhf__tf_adapter_pack(m));
    m->settled = m->open.frozen || rlhf__tf_trunk_frozen(m);
    return RLHF_OK;
}

int32_t rlhf__tf_weights_can_wait(const struct rlhf__tf *m) {
    return m->open.trainable && !rlhf__tf_trunk_frozen(m);
}

rlhf_status rlhf__tf_weights_receive_globals(struct rlhf__tf *m, const rlhf_forward *f) {
    if (!f || !f->wanted) return RLHF_OK;
    rlhf__tf_storage_wanted(m, -1, 0, RLHF_TF_N_GLOBAL, f);
    m->lm_fresh = 0;
    return pack_heads(m);
}

rlhf_status rlhf__tf_weights_receive(struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site,
                                     const rlhf_forward *f) {
    if (!f || !f->wanted) return RLHF_OK;
    rlhf__tf_storage_wanted(m, layer, rlhf__tf_site_first(site),
                            rlhf__tf_site_first((enum rlhf__tf_site)(site + 1)), f);
    return pack_site(m, layer, site);
}

rlhf_status rlhf__tf_lm_ready(struct rlhf__tf *m) {
    if (m->base) {
        RLHF_TRY(rlhf__tf_lm_ready(m->base));
        m->lm = m->base->lm;
        m->lm_fresh = 1;
        return RLHF_OK;
    }
    if (m->lm_fresh) return RLHF_OK;
    if (!m->lm) RLHF_TRY(make(m, m->arch.d, rlhf__tf_outputs(m), m->dtype, 1, &m->lm));
    RLHF_TRY(pack(m, m->lm, rlhf__tf_global(m, lm_slot(m))));
    m->lm_fresh = 1;
    return RLHF_OK;
}
