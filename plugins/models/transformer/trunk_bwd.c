// transformer/trunk_bwd.c: the backward pass of the layers, from d(loss)/d(residual stream) to the
// gradients. Each function mirrors its counterpart in trunk.c, in reverse order.
//
// ds is the gradient of the stream, f32 [T, d]; products read it in the act dtype. Each block adds
// its part to ds in place; if the block's output has a norm, the spare buffer is the gradient of
// that output. With RLHF_TF_NORM_SUMS there is a norm between blocks, so ds and a spare buffer are
// swapped.
#include "internal.h"

struct pass {
    struct rlhf__tf *m;
    const struct rlhf__tf_work *w;
    const rlhf_compute *c;
    struct rlhf_tf_widths n;
    int32_t layer;
    uint32_t rows;
    rlhf_dev ds, spare;
    int32_t end_layer, end_site; // the lowest product that is trained; layer -1: embeddings too
    const rlhf_forward *f;
};

static rlhf_status reserve(struct rlhf__tf *m, const struct rlhf__tf_work *w) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const uint64_t rows = w->rows.total, act = rows * rlhf__tf_esz(m), d = (uint64_t)n.d;
    const struct rlhf__tf_mix_widths *most = &m->most;
    const int32_t wide = n.inner > most->first ? n.inner : most->first;
    const int32_t fc = m->arch.gated ? n.fc : 0, dfc = fc > most->scratch ? fc : most->scratch;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.wide, act * (uint64_t)wide));
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.datt, act * (uint64_t)most->mixed));
    if (dfc) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dfc, act * (uint64_t)dfc));
    if (rlhf__tf_norms_before(&m->arch)) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.narrow, act * d));
    if (m->dtype != RLHF_F32) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dy, act * d));
    uint64_t low = 0;
    for (int32_t i = 0; i < TF_N_SITE; i++)
        if (rlhf__tf_low_width(m, (enum rlhf__tf_site)i) > low)
            low = rlhf__tf_low_width(m, (enum rlhf__tf_site)i);
    if (low) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.dlow, act * low));
    if (m->arch.norm_at == RLHF_TF_NORM_BEFORE) return RLHF_OK;
    return rlhf__tf_reserve(m, &m->bwd.ds2, rows * sizeof(float) * d);
}

// ---- steps ----

// *dy = d, f32 [T, d], converted to the act dtype.
static rlhf_status lower(const struct pass *p, rlhf_dev d, rlhf_dev *dy) {
    *dy = d;
    if (p->m->dtype == RLHF_F32) return RLHF_OK;
    *dy = p->m->bwd.dy.p;
    return p->c->convert(p->c->ctx, *dy, p->m->dtype, d, RLHF_F32,
                         (uint64_t)p->rows * (uint64_t)p->n.d);
}

// 1 if everything below this product is frozen.
static int32_t is_end(const struct pass *p, enum rlhf__tf_site site) {
    return p->layer == p->end_layer && (int32_t)site == p->end_site;
}

// Computes the gradients of a product's weight and bias, or of its adapter, from the product's
// input x and from dy (act dtype). If anything below the product is trained, also computes dx, the
// gradient of x: dx = dy W^T in dx_dtype or, if accumulate is set, dx += dy W^T.
static rlhf_status product_bwd(const struct pass *p, rlhf_dev dx, int32_t dx_dtype,
                               int32_t accumulate, const struct rlhf__tf_acts *a, rlhf_dev x,
                               rlhf_dev dy, enum rlhf__tf_site site) {
    const struct rlhf__tf_tensor *t = rlhf__tf_layer(p->m, p->layer, rlhf__tf_site_slot(site));
    const struct rlhf__tf_low *low = rlhf__tf_low_of(p->m, p->layer, site);
    const rlhf_weight *w = p->m->w[p->layer].of[site];
    if (t->trained || low) RLHF_TRY(rlhf__tf_input_again(p->m, p->w, p->layer, site));
    if (t->trained) RLHF_TRY(p->c->linear_dw(p->c->ctx, t[0].grad, t[1].grad, x, dy, w, p->rows));
    if (low) RLHF_TRY(rlhf__tf_low_bwd(p->m, low, x, a->low[site], dy, p->rows));
    if (is_end(p, site)) return RLHF_OK;
    if (!low) return p->c->linear_dx(p->c->ctx, dx, dx_dtype, accumulate, dy, w, p->rows);
    const rlhf_linear_sum s = {.size = sizeof s,
                               .rows = p->rows,
                               .out_dtype = dx_dtype,
                               .accumulate = accumulate,
                               .across = 1,
                               .out = dx,
                               .x = dy,
                               .x2 = p->m->bwd.dlow.p,
                               .w = w,
                               .w2 = low->down};
    return p->c->linear_sum(p->c->ctx, &s);
}

// dx = dy W^T in the act dtype, and the gradients of the weight and the bias.
static rlhf_status linear_bwd(const struct pass *p, rlhf_dev dx, const struct rlhf__tf_acts *a,
                              rlhf_dev x, rlhf_dev dy, enum rlhf__tf_site site) {
    return product_bwd(p, dx, p->m->dtype, 0, a, x, dy, site);
}

// Like linear_bwd, for a product whose input was the stream: ds += dy W^T.
static rlhf_status linear_bwd_add(const struct pass *p, const struct rlhf__tf_acts *a, rlhf_dev x,
                                  rlhf_dev dy, enum rlhf__tf_site site) {
    return product_bwd(p, p->ds, RLHF_F32, 1, a, x, dy, site);
}

// Sets *dx to the gradient of the activation's input `x`; `d` is the gradient of the activation's
// output. Without a gate, *dx is `d`, which is overwritten. With a gate, *dx is bwd.dfc, because
// `x` is twice as wide as `d`.
static rlhf_status act_bwd(const struct pass *p, rlhf_dev *dx, rlhf_dev d, rlhf_dev x) {
    const struct rlhf_tf_arch *a = &p->m->arch;
    *dx = a->gated ? p->m->bwd.dfc.p : d;
    if (a->gated)
        return p->c->gate_bwd(p->c->ctx, *dx, d, x, a->act, p->m->dtype, p->rows, p->n.inner);
    return p->c->act_bwd(p->c->ctx, d, d, x, a->act, p->m->dtype,
                         (uint64_t)p->rows * (uint64_t)p->n.inner);
}

// x is the stream, and dh is the gradient of norm(x), the input of a product. Adds the
// gradient of x to ds.
static rlhf_status norm_bwd_add(const struct pass *p, rlhf_dev dh, rlhf_dev x, rlhf_dev stats,
                                int32_t slot) {
    return rlhf__tf_norm_bwd(p->m, rlhf__tf_layer(p->m, p->layer, slot), p->ds, 1, dh, p->m->dtype,
                             x, stats, p->rows);
}

// With RLHF_TF_NORM_SUMS: x is a residual sum, and ds is the gradient of norm(x). Replaces ds with
// the gradient of x. gamma is the norm's gain.
static rlhf_status norm_bwd(struct pass *p, rlhf_dev x, rlhf_dev stats,
                            const struct rlhf__tf_tensor *gamma) {
    rlhf_dev dx = p->spare;
    RLHF_TRY(rlhf__tf_norm_bwd(p->m, gamma, dx, 0, p->ds, RLHF_F32, x, stats, p->rows));
    p->spare = p->ds;
    p->ds = dx;
    return RLHF_OK;
}

// ---- layers ----

// Reports that the gradients of a product, and of the norm among its slots (rlhf__tf_site_first),
// are complete. With adapters, reports the whole layer at once, after its last product, because the
// gradients of the layer's adapters are stored after its other gradients.
static void graded(const struct pass *p, enum rlhf__tf_site site) {
    if (!p->m->low)
        rlhf__tf_storage_graded(p->m, p->layer, rlhf__tf_site_first(site),
                                rlhf__tf_site_first((enum rlhf__tf_site)(site + 1)), p->f);
    else if (site == TF_SITE_QKV)
        rlhf__tf_storage_graded(p->m, p->layer, 0, RLHF_TF_N_LAYER, p->f);
}

// *dy is the gradient of a block's last product, in the act dtype: ds or, if a norm follows, the
// gradient of the norm's input. block 0 is attention, 1 the MLP.
static rlhf_status block_bwd(const struct pass *p, const struct rlhf__tf_acts *a, int32_t block,
                             rlhf_dev *dy) {
    const int32_t slot = block ? RLHF_TF_P2_G : RLHF_TF_P1_G;
    if (!rlhf__tf_norms_after(&p->m->arch)) return lower(p, p->ds, dy);
    RLHF_TRY(rlhf__tf_norm_bwd(p->m, rlhf__tf_layer(p->m, p->layer, slot), p->spare, 0, p->ds,
                               RLHF_F32, a->branch[block], a->branch_stats[block], p->rows));
    return lower(p, p->spare, dy);
}

// The gradients of a block's first product, from dy, and of the norm before it. Adds the gradient
// of the block's input to ds.
static rlhf_status block_in_bwd(const struct pass *p, const struct rlhf__tf_acts *a, int32_t block,
                                rlhf_dev dy) {
    const enum rlhf__tf_site site = block ? TF_SITE_FC : TF_SITE_QKV;
    const rlhf_dev h = block ? a->h2 : a->h1, dh = p->m->bwd.narrow.p;
    if (!rlhf__tf_norms_before(&p->m->arch)) return linear_bwd_add(p, a, h, dy, site);
    RLHF_TRY(linear_bwd(p, dh, a, h, dy, site));
    if (is_end(p, site)) return RLHF_OK;
    return norm_bwd_add(p, dh, block ? a->mid : a->in, block ? a->stats2 : a->stats1,
                        block ? RLHF_TF_N2_G : RLHF_TF_N1_G);
}

static rlhf_status both_blocks_bwd(const struct pass *p, const struct rlhf__tf_acts *a) {
    const struct rlhf__tf_scratch *b = &p->m->bwd;
    rlhf_dev dy, dfc, dfirst;
    RLHF_TRY(block_bwd(p, a, 1, &dy));
    RLHF_TRY(linear_bwd(p, b->wide.p, a, a->ac, dy, TF_SITE_OUT));
    if (is_end(p, TF_SITE_OUT)) return RLHF_OK;
    graded(p, TF_SITE_OUT);
    RLHF_TRY(act_bwd(p, &dfc, b->wide.p, a->fc));
    RLHF_TRY(block_in_bwd(p, a, 1, dfc));
    if (is_end(p, TF_SITE_FC)) return RLHF_OK;
    graded(p, TF_SITE_FC);
    RLHF_TRY(block_bwd(p, a, 0, &dy));
    RLHF_TRY(linear_bwd(p, b->datt.p, a, a->mixed, dy, TF_SITE_PROJ));
    if (is_end(p, TF_SITE_PROJ)) return RLHF_OK;
    graded(p, TF_SITE_PROJ);
    RLHF_TRY(rlhf__tf_mix_bwd(p->m, p->w, p->layer, a, b->datt.p, &dfirst));
    return block_in_bwd(p, a, 0, dfirst);
}

static rlhf_status sums_layer_bwd(struct pass *p, const struct rlhf__tf_acts *a) {
    const struct rlhf__tf_scratch *b = &p->m->bwd;
    rlhf_dev dy, dfc, dfirst;
    RLHF_TRY(norm_bwd(p, a->mid, a->stats2, rlhf__tf_layer(p->m, p->layer, RLHF_TF_N2_G)));
    RLHF_TRY(lower(p, p->ds, &dy));
    RLHF_TRY(linear_bwd(p, b->wide.p, a, a->ac, dy, TF_SITE_OUT));
    if (is_end(p, TF_SITE_OUT)) return RLHF_OK;
    graded(p, TF_SITE_OUT);
    RLHF_TRY(act_bwd(p, &dfc, b->wide.p, a->fc));
    RLHF_TRY(linear_bwd_add(p, a, a->h2, dfc, TF_SITE_FC));
    if (is_end(p, TF_SITE_FC)) return RLHF_OK;
    graded(p, TF_SITE_FC);
    RLHF_TRY(norm_bwd(p, a->sum, a->stats1, rlhf__tf_layer(p->m, p->layer, RLHF_TF_N1_G)));
    RLHF_TRY(lower(p, p->ds, &dy));
    RLHF_TRY(linear_bwd(p, b->datt.p, a, a->mixed, dy, TF_SITE_PROJ));
    if (is_end(p, TF_SITE_PROJ)) return RLHF_OK;
    graded(p, TF_SITE_PROJ);
    RLHF_TRY(rlhf__tf_mix_bwd(p->m, p->w, p->layer, a, b->datt.p, &dfirst));
    return linear_bwd_add(p, a, a->h1, dfirst, TF_SITE_QKV);
}

// Sets where the backward pass ends: at the lowest adapter or, without adapters, at the embeddings
// (layer -1).
static void find_end(struct pass *p) {
    p->end_layer = p->end_site = -1;
    if (!rlhf__tf_trunk_frozen(p->m)) return;
    for (p->end_layer = 0; p->end_layer < p->m->arch.n_layer; p->end_layer++)
        for (p->end_site = 0; p->end_site < TF_N_SITE; p->end_site++)
            if (rlhf__tf_low_of(p->m, p->end_layer, (enum rlhf__tf_site)p->end_site)) return;
}

static rlhf_status embed_bwd(struct pass *p) {
    struct rlhf__tf *m = p->m;
    const int32_t turned = m->arch.rotary.frequency != NULL;
    if (rlhf__tf_norms_sums(&m->arch))
        RLHF_TRY(norm_bwd(p, p->w->emb.p, p->w->emb_stats.p, rlhf__tf_global(m, RLHF_TF_EMB_G)));
    return m->c->embed_bwd(m->c->ctx, rlhf__tf_global(m, RLHF_TF_WTE)->grad,
                           rlhf__tf_global(m, RLHF_TF_WPE)->grad, p->ds, p->w->rows.ids,
                           turned ? NULL : p->w->rows.pos, rlhf__tf_embed_scale(m), p->rows, p->n.d,
                           m->arch.n_vocab, turned ? 0 : m->arch.n_ctx);
}

rlhf_status rlhf__tf_trunk_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_forward *f) {
    RLHF_TRY(reserve(m, w));
    struct pass p = {.m = m,
                     .w = w,
                     .c = m->c,
                     .n = rlhf_tf_widths(&m->arch),
                     .rows = w->rows.total,
                     .ds = m->bwd.ds.p,
                     .spare = m->bwd.ds2.p,
                     .f = f};
    find_end(&p);
    const int32_t lowest = p.end_layer < 0 ? 0 : p.end_layer;
    for (p.layer = m->arch.n_layer - 1; p.layer >= lowest; p.layer--) {
        const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, p.layer);
        if (m->open.recompute) RLHF_TRY(rlhf__tf_layer_again(m, w, p.layer));
        RLHF_TRY(rlhf__tf_norms_sums(&m->arch) ? sums_layer_bwd(&p, &a) : both_blocks_bwd(&p, &a));
        graded(&p, TF_SITE_QKV);
    }
    return p.end_layer < 0 ? embed_bwd(&p) : RLHF_OK;
}
