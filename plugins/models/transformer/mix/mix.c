// transformer/mix/mix.c: see mix.h. The forward pass between a layer's first and second product.
#include "transformer/internal.h"

// ---- widths ----

struct rlhf__tf_mix_widths rlhf__tf_mix_widths(const struct rlhf_tf_arch *a, int32_t layer) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(a);
    const struct rlhf_tf_state *s = &a->state;
    const int32_t channels = rlhf__tf_delta_channels(s), values = rlhf__tf_delta_values(s);
    switch (rlhf__tf_mix_of(a, layer)) {
    case RLHF_TF_CONV:
        return (struct rlhf__tf_mix_widths){3 * n.d, n.d, n.d, 0};
    case RLHF_TF_DELTA:
        return (struct rlhf__tf_mix_widths){channels + values + 2 * s->value_heads, values,
                                            channels, s->value_heads};
    default:
        return (struct rlhf__tf_mix_widths){n.qkv, n.q, a->attn_gate ? n.qkv : 0, a->n_head};
    }
}

static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

void rlhf__tf_mix_measure(struct rlhf__tf *m) {
    struct rlhf__tf_mix_widths *most = &m->most;
    for (int32_t l = 0; l < m->arch.n_layer; l++) {
        const struct rlhf__tf_mix_widths one = rlhf__tf_mix_widths(&m->arch, l);
        most->first = larger(most->first, one.first);
        most->mixed = larger(most->mixed, one.mixed);
        most->scratch = larger(most->scratch, one.scratch);
        most->stats = larger(most->stats, one.stats);
    }
    m->n_attention = rlhf__tf_attention_index(&m->arch, m->arch.n_layer);
}

int32_t rlhf__tf_attention_index(const struct rlhf_tf_arch *a, int32_t layer) {
    int32_t n = layer;
    for (int32_t l = 0; a->mix_layers && l < layer; l++)
        n -= a->mix_layers[l] != RLHF_TF_ATTENTION;
    return n;
}

// ---- arguments ----

static rlhf_dev value(const struct rlhf__tf *m, int32_t layer, int32_t slot) {
    return m->tensors ? m->tensors[RLHF_TF_N_GLOBAL + layer * RLHF_TF_N_LAYER + slot].value : NULL;
}

rlhf_attn rlhf__tf_attn_geometry(const struct rlhf__tf *m, int32_t layer, int32_t cached) {
    const struct rlhf_tf_arch *a = &m->arch;
    const struct rlhf_tf_widths n = rlhf_tf_widths(a);
    return (rlhf_attn){.size = sizeof(rlhf_attn),
                       .heads = a->n_head,
                       .head_dim = a->head_dim,
                       .causal = a->causal,
                       .dtype = m->dtype,
                       .q_stride = n.qkv,
                       .kv_stride = cached ? n.kv : n.qkv,
                       .out_stride = n.q,
                       .scale = a->attn_scale / (a->scale_by_layer ? layer + 1.0 : 1.0),
                       .kv_heads = a->n_kv_head,
                       .window = rlhf__tf_window(a, layer),
                       .softcap = a->attn_softcap};
}

rlhf_conv rlhf__tf_conv_args(const struct rlhf__tf *m, int32_t layer) {
    const struct rlhf_tf_arch *a = &m->arch;
    const int32_t delta = rlhf__tf_mix_of(a, layer) == RLHF_TF_DELTA;
    const int32_t channels = delta ? rlhf__tf_delta_channels(&a->state) : a->d;
    return (rlhf_conv){.size = sizeof(rlhf_conv),
                       .channels = channels,
                       .taps = a->state.taps,
                       .dtype = m->dtype,
                       .act = delta ? a->act : 0,
                       .x_stride = delta ? rlhf__tf_mix_widths(a, layer).first : channels,
                       .y_stride = channels,
                       .weight = value(m, layer, RLHF_TF_CONV_W),
                       .bias = value(m, layer, RLHF_TF_CONV_B)};
}

rlhf_delta rlhf__tf_delta_args(const struct rlhf__tf *m, int32_t layer) {
    const struct rlhf_tf_state *s = &m->arch.state;
    return (rlhf_delta){.size = sizeof(rlhf_delta),
                        .heads = s->value_heads,
                        .key_heads = s->key_heads,
                        .key_dim = s->key_dim,
                        .value_dim = s->value_dim,
                        .dtype = m->dtype,
                        .x_stride = rlhf__tf_delta_channels(s),
                        .gate_stride = rlhf__tf_mix_widths(&m->arch, layer).first,
                        .out_stride = rlhf__tf_delta_values(s),
                        .scale = 1.0 / sqrt((double)s->key_dim),
                        .eps = 1e-6,
                        .a_log = value(m, layer, RLHF_TF_A_LOG),
                        .dt_bias = value(m, layer, RLHF_TF_DT_BIAS)};
}

rlhf_gated_norm rlhf__tf_gated_norm_args(const struct rlhf__tf *m, int32_t layer) {
    const struct rlhf_tf_state *s = &m->arch.state;
    return (rlhf_gated_norm){.size = sizeof(rlhf_gated_norm),
                             .heads = s->value_heads,
                             .head_dim = s->value_dim,
                             .dtype = m->dtype,
                             .act = RLHF_ACT_SILU,
                             .x_stride = rlhf__tf_delta_values(s),
                             .gate_stride = rlhf__tf_mix_widths(&m->arch, layer).first,
                             .out_stride = rlhf__tf_delta_values(s),
                             .eps = m->arch.norm_eps,
                             .gamma = value(m, layer, RLHF_TF_MIX_G)};
}

// x * f(gate), all of them one block of a row.
static rlhf_columns columns(const struct rlhf__tf *m, int32_t width, int32_t act) {
    return (rlhf_columns){.size = sizeof(rlhf_columns),
                          .blocks = 1,
                          .width = width,
                          .dtype = m->dtype,
                          .act = act,
                          .x_stride = width,
                          .gate_stride = width,
                          .out_stride = width,
                          .x_step = width,
                          .gate_step = width,
                          .out_step = width};
}

rlhf_columns rlhf__tf_gate_args(const struct rlhf__tf *m, int32_t layer) {
    const struct rlhf__tf_mix_widths n = rlhf__tf_mix_widths(&m->arch, layer);
    const int32_t attention = rlhf__tf_mix_of(&m->arch, layer) == RLHF_TF_ATTENTION;
    rlhf_columns c = columns(m, n.mixed, attention ? RLHF_ACT_SIGMOID : 0);
    c.gate_stride = n.first;
    return c;
}

int32_t rlhf__tf_gate_at(const struct rlhf__tf *m, int32_t layer) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    switch (rlhf__tf_mix_of(&m->arch, layer)) {
    case RLHF_TF_CONV:
        return n.d;
    case RLHF_TF_DELTA:
        return rlhf__tf_delta_channels(&m->arch.state);
    default:
        return n.q + 2 * n.kv;
    }
}

// ---- what the backend must have ----

#define RETURN_IF_LACKING(f)                                                                       \
    if (!RLHF_COMPUTE_HAS(c, f) || (trainable && !RLHF_COMPUTE_HAS(c, f##_bwd))) return #f;

static int32_t has(const struct rlhf_tf_arch *a, enum rlhf_tf_mix mix, int32_t *layer) {
    for (*layer = 0; *layer < a->n_layer; ++*layer)
        if (rlhf__tf_mix_of(a, *layer) == mix) return 1;
    return 0;
}

const char *rlhf__tf_mix_lacking(const rlhf_compute *c, const struct rlhf_tf_arch *a,
                                 int32_t trainable) {
    int32_t layer;
    const int32_t conv = has(a, RLHF_TF_CONV, &layer), delta = has(a, RLHF_TF_DELTA, &layer);
    if (conv || delta) RETURN_IF_LACKING(conv)
    if (conv || a->attn_gate) RETURN_IF_LACKING(multiply)
    if (!delta) return NULL;
    RETURN_IF_LACKING(delta)
    RETURN_IF_LACKING(gated_norm)
    return NULL;
}

rlhf_status rlhf__tf_mix_check(const struct rlhf_tf_arch *a, const rlhf_model_open *o) {
    const rlhf_compute *c = o->compute;
    const struct rlhf__tf m = {.arch = *a, .dtype = o->dtype};
    int32_t layer;
    rlhf_call call = {.size = sizeof call, .dtype = o->dtype};
    for (int32_t mix = RLHF_TF_CONV; mix <= RLHF_TF_DELTA; mix++) {
        if (!has(a, (enum rlhf_tf_mix)mix, &layer)) continue;
        const rlhf_conv conv = rlhf__tf_conv_args(&m, layer);
        call.op = RLHF_COMPUTE_OP(conv);
        call.conv = &conv;
        RLHF_TRY(c->supports(c->ctx, &call));
        call.conv = NULL;
        if (mix != RLHF_TF_DELTA) continue;
        const rlhf_delta delta = rlhf__tf_delta_args(&m, layer);
        const rlhf_gated_norm norm = rlhf__tf_gated_norm_args(&m, layer);
        call.op = RLHF_COMPUTE_OP(delta);
        call.delta = &delta;
        RLHF_TRY(c->supports(c->ctx, &call));
        call.delta = NULL;
        call.op = RLHF_COMPUTE_OP(gated_norm);
        call.gated_norm = &norm;
        RLHF_TRY(c->supports(c->ctx, &call));
        call.gated_norm = NULL;
    }
    if (!has(a, RLHF_TF_ATTENTION, &layer) || !a->attn_gate) return RLHF_OK;
    const rlhf_columns gate = rlhf__tf_gate_args(&m, layer);
    call.op = RLHF_COMPUTE_OP(multiply);
    call.columns = &gate;
    return c->supports(c->ctx, &call);
}

// ---- forward ----

static rlhf_dev at(const struct rlhf__tf *m, rlhf_dev base, int32_t elements) {
    return rlhf_dev_at(base, (uint64_t)elements * rlhf__tf_esz(m));
}

rlhf_status rlhf__tf_spread(const struct rlhf__tf *m, rlhf_dev rows_at, rlhf_dev product,
                            uint32_t rows, int32_t back) {
    const rlhf_compute *c = m->c;
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const int32_t dim = m->arch.head_dim;
    // Of the queries, the gates, and the keys and values: places in the product and in the rows.
    const int32_t from[] = {0, dim, 2 * n.q}, to[] = {0, n.q + 2 * n.kv, n.q};
    for (int i = 0; i < 3; i++) {
        rlhf_columns k = columns(m, i < 2 ? dim : 2 * n.kv, 0);
        k.blocks = i < 2 ? m->arch.n_head : 1;
        k.x_stride = k.out_stride = n.qkv;
        k.x_step = back ? dim : 2 * dim;
        k.out_step = back ? 2 * dim : dim;
        const rlhf_dev a = at(m, product, from[i]), b = at(m, rows_at, to[i]);
        RLHF_TRY(c->multiply(c->ctx, &k, back ? a : b, back ? b : a, NULL, rows));
    }
    return RLHF_OK;
}

rlhf_status rlhf__tf_mixed_again(const struct rlhf__tf *m, int32_t layer,
                                 const struct rlhf__tf_acts *a, uint32_t rows) {
    const rlhf_compute *c = m->c;
    const rlhf_dev gate = at(m, a->qkv, rlhf__tf_gate_at(m, layer));
    if (!rlhf__tf_gates(&m->arch, layer)) return RLHF_OK;
    if (rlhf__tf_mix_of(&m->arch, layer) == RLHF_TF_DELTA) {
        const rlhf_gated_norm n = rlhf__tf_gated_norm_args(m, layer);
        return c->gated_norm(c->ctx, &n, a->mixed, a->lse, a->att, gate, rows);
    }
    const rlhf_columns g = rlhf__tf_gate_args(m, layer);
    return c->multiply(c->ctx, &g, a->mixed, a->att, gate, rows);
}

static rlhf_status attention(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                             const rlhf_gen *gen, int32_t layer, const struct rlhf__tf_acts *a) {
    const rlhf_compute *c = m->c;
    const rlhf_ragged *r = &w->rows.ragged;
    const rlhf_attn g = rlhf__tf_attn_geometry(m, layer, gen != NULL);
    struct rlhf__tf_qkv s = rlhf__tf_qkv(m, a->qkv);
    if (m->arch.attn_gate) RLHF_TRY(rlhf__tf_spread(m, a->qkv, a->first, r->total, 0));
    if (rlhf__tf_rotates(m, layer)) {
        const rlhf_rope turn = rlhf__tf_rope_args(m, &w->rows, layer, a->raw, a->raw_stats);
        RLHF_TRY(c->rope(c->ctx, &turn, a->qkv, r->total));
    }
    if (gen) {
        const uint64_t cache = rlhf__tf_cache_at(m, gen, layer);
        const rlhf_dev k = rlhf_dev_at(gen->k.p, cache), v = rlhf_dev_at(gen->v.p, cache);
        if (gen->ring && g.window)
            return rlhf__tf_ring_attend(m, gen->ring, &w->rows, &g, &s, k, v, a->att);
        RLHF_TRY(c->kv_store(c->ctx, k, v, s.k, s.v, g.q_stride, r, rlhf_tf_widths(&m->arch).kv,
                             m->dtype));
        s.k = k;
        s.v = v;
    }
    return c->attention(c->ctx, &g, r, a->att, a->lse, s.q, s.k, s.v);
}

rlhf_status rlhf__tf_mix(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                         const rlhf_gen *gen, int32_t layer, const struct rlhf__tf_acts *a) {
    const rlhf_compute *c = m->c;
    const rlhf_ragged *r = &w->rows.ragged;
    const enum rlhf_tf_mix mix = rlhf__tf_mix_of(&m->arch, layer);
    struct rlhf__tf_states s;
    if (mix == RLHF_TF_ATTENTION) {
        RLHF_TRY(attention(m, w, gen, layer, a));
        return rlhf__tf_mixed_again(m, layer, a, r->total);
    }
    const rlhf_conv conv = rlhf__tf_conv_args(m, layer);
    rlhf__tf_states_of(m, gen, &w->rows, layer, &s);
    if (mix == RLHF_TF_CONV) {
        RLHF_TRY(rlhf__tf_conv_input(m, layer, a, r->total));
        RLHF_TRY(c->conv(c->ctx, &conv, r, gen ? &s.conv : NULL, a->att, m->bwd.mix.p));
        return rlhf__tf_mixed_again(m, layer, a, r->total);
    }
    const rlhf_delta delta = rlhf__tf_delta_args(m, layer);
    const rlhf_dev beta = at(m, a->qkv, (int32_t)(delta.gate_stride - 2 * delta.heads));
    RLHF_TRY(c->conv(c->ctx, &conv, r, gen ? &s.conv : NULL, m->bwd.mix.p, a->qkv));
    RLHF_TRY(c->delta(c->ctx, &delta, r, gen ? &s.delta : NULL, a->att, m->bwd.mix.p, beta,
                      at(m, beta, delta.heads)));
    return rlhf__tf_mixed_again(m, layer, a, r->total);
}

rlhf_status rlhf__tf_conv_input(const struct rlhf__tf *m, int32_t layer,
                                const struct rlhf__tf_acts *a, uint32_t rows) {
    const rlhf_columns k = rlhf__tf_conv_input_args(m, layer);
    return m->c->multiply(m->c->ctx, &k, m->bwd.mix.p, at(m, a->qkv, 2 * m->arch.d), a->qkv, rows);
}

rlhf_columns rlhf__tf_conv_input_args(const struct rlhf__tf *m, int32_t layer) {
    rlhf_columns k = columns(m, m->arch.d, 0);
    k.x_stride = k.gate_stride = rlhf__tf_mix_widths(&m->arch, layer).first;
    return k;
}
