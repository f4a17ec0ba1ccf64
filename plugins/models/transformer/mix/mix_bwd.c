// transformer/mix/mix_bwd.c: the backward pass of mix.c. Each function mirrors its counterpart
// there. Convolutions' inputs and results, and gated results, are recomputed.
#include "transformer/internal.h"

// One layer.
struct pass {
    const struct rlhf__tf *m;
    const struct rlhf__tf_work *w;
    const rlhf_compute *c;
    const struct rlhf__tf_acts *a;
    int32_t layer;
    uint32_t rows;
};

static rlhf_dev at(const struct pass *p, rlhf_dev base, int32_t elements) {
    return rlhf_dev_at(base, (uint64_t)elements * rlhf__tf_esz(p->m));
}

static rlhf_dev grad(const struct pass *p, int32_t slot) {
    return p->m->tensors[RLHF_TF_N_GLOBAL + p->layer * RLHF_TF_N_LAYER + slot].grad;
}

// From d, the gradient of att * f(gate): the gradient of att, in its place, and that of the gate in
// d_rows, which has the layout of a->qkv.
static rlhf_status gate_bwd(const struct pass *p, rlhf_dev d, rlhf_dev d_rows) {
    const rlhf_columns g = rlhf__tf_gate_args(p->m, p->layer);
    const int32_t gate = rlhf__tf_gate_at(p->m, p->layer);
    return p->c->multiply_bwd(p->c->ctx, &g, d, at(p, d_rows, gate), d, p->a->att,
                              at(p, p->a->qkv, gate), p->rows);
}

static rlhf_status attention_bwd(const struct pass *p, rlhf_dev datt, rlhf_dev *d_first) {
    const struct rlhf__tf *m = p->m;
    const rlhf_dev d_rows = m->bwd.wide.p;
    const rlhf_attn g = rlhf__tf_attn_geometry(m, p->layer, 0);
    const struct rlhf__tf_qkv s = rlhf__tf_qkv(m, p->a->qkv), d = rlhf__tf_qkv(m, d_rows);
    if (m->arch.attn_gate) RLHF_TRY(gate_bwd(p, datt, d_rows));
    RLHF_TRY(p->c->attention_bwd(p->c->ctx, &g, &p->w->rows.ragged, d.q, d.k, d.v, datt, p->a->att,
                                 p->a->lse, s.q, s.k, s.v));
    *d_first = d_rows;
    if (rlhf__tf_rotates(m, p->layer)) {
        const rlhf_rope turn =
            rlhf__tf_rope_args(m, &p->w->rows, p->layer, p->a->raw, p->a->raw_stats);
        RLHF_TRY(p->c->rope_bwd(p->c->ctx, &turn, d_rows, grad(p, RLHF_TF_QN_G),
                                grad(p, RLHF_TF_KN_G), p->rows));
    }
    if (!m->arch.attn_gate) return RLHF_OK;
    *d_first = m->bwd.dfc.p;
    return rlhf__tf_spread(m, d_rows, *d_first, p->rows, 1);
}

static rlhf_status conv_bwd(const struct pass *p, rlhf_dev dx, rlhf_dev dy, rlhf_dev x) {
    const rlhf_conv conv = rlhf__tf_conv_args(p->m, p->layer);
    return p->c->conv_bwd(p->c->ctx, &conv, &p->w->rows.ragged, dx, grad(p, RLHF_TF_CONV_W),
                          grad(p, RLHF_TF_CONV_B), dy, x);
}

static rlhf_status short_conv_bwd(const struct pass *p, rlhf_dev d, rlhf_dev d_first) {
    const struct rlhf__tf *m = p->m;
    const rlhf_columns k = rlhf__tf_conv_input_args(m, p->layer);
    const rlhf_dev du = m->bwd.dfc.p;
    const int32_t x = 2 * m->arch.d;
    RLHF_TRY(gate_bwd(p, d, d_first));
    RLHF_TRY(rlhf__tf_conv_input(m, p->layer, p->a, p->rows));
    RLHF_TRY(conv_bwd(p, du, d, m->bwd.mix.p));
    return p->c->multiply_bwd(p->c->ctx, &k, at(p, d_first, x), d_first, du, at(p, p->a->qkv, x),
                              p->a->qkv, p->rows);
}

static rlhf_status delta_bwd(const struct pass *p, rlhf_dev d, rlhf_dev d_first) {
    const struct rlhf__tf *m = p->m;
    const rlhf_compute *c = p->c;
    const struct rlhf__tf_acts *a = p->a;
    const rlhf_ragged *r = &p->w->rows.ragged;
    const rlhf_conv conv = rlhf__tf_conv_args(m, p->layer);
    const rlhf_delta delta = rlhf__tf_delta_args(m, p->layer);
    const rlhf_gated_norm norm = rlhf__tf_gated_norm_args(m, p->layer);
    const int32_t z = rlhf__tf_gate_at(m, p->layer);
    const int32_t beta = (int32_t)delta.gate_stride - 2 * delta.heads, alpha = beta + delta.heads;
    const rlhf_dev x = m->bwd.mix.p, dx = m->bwd.dfc.p;
    RLHF_TRY(c->gated_norm_bwd(c->ctx, &norm, d, at(p, d_first, z), grad(p, RLHF_TF_MIX_G), d,
                               a->lse, a->att, at(p, a->qkv, z), p->rows));
    RLHF_TRY(c->conv(c->ctx, &conv, r, NULL, x, a->qkv));
    RLHF_TRY(c->delta_bwd(c->ctx, &delta, r, dx, at(p, d_first, beta), at(p, d_first, alpha),
                          grad(p, RLHF_TF_A_LOG), grad(p, RLHF_TF_DT_BIAS), d, x,
                          at(p, a->qkv, beta), at(p, a->qkv, alpha)));
    return conv_bwd(p, d_first, dx, a->qkv);
}

rlhf_status rlhf__tf_mix_bwd(const struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer,
                             const struct rlhf__tf_acts *a, rlhf_dev d_mixed, rlhf_dev *d_first) {
    const struct pass p = {m, w, m->c, a, layer, w->rows.total};
    const enum rlhf_tf_mix mix = rlhf__tf_mix_of(&m->arch, layer);
    if (mix == RLHF_TF_ATTENTION) return attention_bwd(&p, d_mixed, d_first);
    *d_first = m->bwd.wide.p;
    return mix == RLHF_TF_CONV ? short_conv_bwd(&p, d_mixed, *d_first)
                               : delta_bwd(&p, d_mixed, *d_first);
}
