// transformer/trunk.c: embedding and layers, forward. One function is used for training, inference
// and cached generation, so all three make the same calls of the table on the same values.
#include "internal.h"

// ---- the norm of the architecture, for the trunk and the heads ----

rlhf_status rlhf__tf_norm(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                          rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x, uint32_t rows) {
    const rlhf_compute *c = m->c;
    if (m->arch.norm == RLHF_TF_NORM_RMS)
        return c->rms_norm(c->ctx, out, dtype, stats, x, gamma->value, m->arch.norm_offset,
                           m->stream_eps, rows, m->arch.d);
    return c->norm(c->ctx, out, dtype, stats, x, gamma[0].value, gamma[1].value, m->stream_eps,
                   rows, m->arch.d);
}

rlhf_status rlhf__tf_norm_bwd(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                              rlhf_dev dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype,
                              rlhf_dev x, rlhf_dev stats, uint32_t rows) {
    const rlhf_compute *c = m->c;
    if (m->arch.norm == RLHF_TF_NORM_RMS)
        return c->rms_norm_bwd(c->ctx, dx, accumulate, gamma->grad, dy, dy_dtype, x, stats,
                               gamma->value, m->arch.norm_offset, rows, m->arch.d);
    return c->norm_bwd(c->ctx, dx, accumulate, gamma[0].grad, gamma[1].grad, dy, dy_dtype, x, stats,
                       gamma[0].value, rows, m->arch.d);
}

// ---- a pass ----

struct pass {
    struct rlhf__tf *m;
    const struct rlhf__tf_work *w;
    const rlhf_compute *c;
    const rlhf_gen *gen;
    struct rlhf_tf_widths n;
    int32_t layer;
    uint32_t rows;
    const rlhf_forward *f; // NULL, or a call that may have to wait for values
};

// ---- buffers ----

// The size in bytes of one layer's share of each buffer.
struct share {
    uint64_t stream, h, stats, qkv, raw, raw_stats, att, lse, fc, inner, low[TF_N_SITE];
};

static struct share share_of(const struct rlhf__tf *m, const struct rlhf__tf_work *w) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const uint64_t rows = w->rows.total, act = rows * rlhf__tf_esz(m), f32 = rows * sizeof(float);
    struct share s = {.stream = f32 * (uint64_t)n.d,
                      .h = act * (uint64_t)n.d,
                      .stats = f32 * rlhf__tf_stats(m),
                      .qkv = act * (uint64_t)m->most.first,
                      .raw = act * (uint64_t)(n.q + n.kv),
                      .raw_stats = f32 * rlhf__tf_qk_stats(m),
                      .att = act * (uint64_t)m->most.mixed,
                      .lse = f32 * (uint64_t)m->most.stats,
                      .fc = act * (uint64_t)n.fc,
                      .inner = act * (uint64_t)n.inner};
    for (int32_t i = 0; i < TF_N_SITE; i++)
        s.low[i] = act * rlhf__tf_low_width(m, (enum rlhf__tf_site)i);
    return s;
}

// The number of layers whose activations are kept.
static uint64_t kept(const struct rlhf__tf *m, const struct rlhf__tf_work *w) {
    return w->keep && !m->open.recompute ? (uint64_t)m->arch.n_layer : 1;
}

// Some inputs of matrix products (the outputs of norms and activations) are not stored but
// recomputed in the backward pass. This is done if they have many elements and their rows are wide,
// because recomputing is then cheap. Example: GPT-2 124M with 8 x 64 tokens, f32, level avx512. A
// training step takes 1,834 ms. Recomputing takes this part of it:
//
//   activations   10.8 ms
//   norms          3.6 ms
//
// In bf16, products are faster, so recomputing takes a larger part of the step, about one fiftieth.
// In a phase of PPO, not storing these outputs saves 99 MiB.
#define LEAN_FROM  ((uint64_t)2 << 20) // elements
#define LEAN_WIDTH 512

static int32_t is_lean(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                       const struct share *one) {
    return kept(m, w) > 1 && !rlhf__tf_norms_sums(&m->arch) && m->arch.d >= LEAN_WIDTH &&
           kept(m, w) * (2 * one->h + one->inner) >= LEAN_FROM * rlhf__tf_esz(m);
}

// 1 if the first product of each block reads the stream itself: without a norm or a conversion, and
// before the stream changes.
static int32_t reads_stream(const struct rlhf__tf *m, const struct rlhf__tf_work *w) {
    if (m->dtype != RLHF_F32) return 0;
    return m->arch.norm_at == RLHF_TF_NORM_AFTER || (rlhf__tf_norms_sums(&m->arch) && !w->keep);
}

// Allocates buffers for the inputs of matrix products, except attention's output.
static rlhf_status inputs_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                  const struct share *one) {
    const uint64_t layers = kept(m, w);
    const int32_t own = !reads_stream(m, w);
    if (w->lean) {
        if (own) RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.narrow, one->h));
        return rlhf__tf_reserve(m, &m->bwd.wide, one->inner);
    }
    if (own) RLHF_TRY(rlhf__tf_reserve(m, &w->h1, layers * one->h));
    if (own && w->keep) RLHF_TRY(rlhf__tf_reserve(m, &w->h2, layers * one->h));
    if (!w->keep && !m->arch.gated) return RLHF_OK;
    return rlhf__tf_reserve(m, &w->ac, layers * one->inner);
}

// Allocates the scratch of layers whose second product does not read `att` itself.
static rlhf_status mix_reserve(struct rlhf__tf *m, const struct rlhf__tf_work *w) {
    const uint64_t act = w->rows.total * rlhf__tf_esz(m);
    if (!m->most.scratch) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &m->bwd.mixed, act * (uint64_t)m->most.mixed));
    return rlhf__tf_reserve(m, &m->bwd.mix, act * (uint64_t)m->most.scratch);
}

rlhf_status rlhf__tf_trunk_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    const struct share one = share_of(m, w);
    const uint64_t layers = kept(m, w), streams = w->keep ? (uint64_t)m->arch.n_layer + 1 : 1;
    const int32_t sums = rlhf__tf_norms_sums(&m->arch), after = rlhf__tf_norms_after(&m->arch);
    w->lean = is_lean(m, w, &one);
    RLHF_TRY(rlhf__tf_reserve(m, &w->in, streams * one.stream));
    if (w->keep || sums) RLHF_TRY(rlhf__tf_reserve(m, &w->mid, layers * one.stream));
    RLHF_TRY(rlhf__tf_reserve(m, &w->qkv, layers * one.qkv));
    RLHF_TRY(rlhf__tf_reserve(m, &w->att, layers * one.att));
    RLHF_TRY(rlhf__tf_reserve(m, &w->fc, layers * one.fc));
    if (after) RLHF_TRY(rlhf__tf_reserve(m, &w->branch, 2 * layers * one.stream));
    RLHF_TRY(inputs_reserve(m, w, &one));
    RLHF_TRY(mix_reserve(m, w));
    for (int32_t i = 0; i < TF_N_SITE; i++)
        if (one.low[i]) RLHF_TRY(rlhf__tf_reserve(m, &w->low[i], layers * one.low[i]));
    if (!w->keep) return RLHF_OK;
    if (sums && m->open.recompute) RLHF_TRY(rlhf__tf_reserve(m, &w->sum, one.stream));
    if (after) RLHF_TRY(rlhf__tf_reserve(m, &w->branch_stats, 2 * layers * one.stats));
    if (m->arch.qk_norm) {
        const uint64_t raws = layers > 1 ? (uint64_t)m->n_attention : 1;
        RLHF_TRY(rlhf__tf_reserve(m, &w->raw, raws * one.raw));
        RLHF_TRY(rlhf__tf_reserve(m, &w->raw_stats, raws * one.raw_stats));
    }
    if (sums) RLHF_TRY(rlhf__tf_reserve(m, &w->emb, one.stream));
    if (sums) RLHF_TRY(rlhf__tf_reserve(m, &w->emb_stats, one.stats));
    if (sums || rlhf__tf_norms_before(&m->arch)) {
        RLHF_TRY(rlhf__tf_reserve(m, &w->stats1, layers * one.stats));
        RLHF_TRY(rlhf__tf_reserve(m, &w->stats2, layers * one.stats));
    }
    return rlhf__tf_reserve(m, &w->lse, layers * one.lse);
}

static rlhf_dev part(const struct rlhf__tf_buf *b, uint64_t i, uint64_t bytes) {
    return rlhf_dev_at(b->p, i * bytes);
}

struct rlhf__tf_acts rlhf__tf_acts(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                                   int32_t layer) {
    const struct share one = share_of(m, w);
    const uint64_t l = kept(m, w) > 1 ? (uint64_t)layer : 0;
    const int32_t after = rlhf__tf_norms_after(&m->arch), own = !reads_stream(m, w);
    struct rlhf__tf_acts a = {.in = part(&w->in, w->keep ? (uint64_t)layer : 0, one.stream),
                              .h1 = w->lean ? m->bwd.narrow.p : part(&w->h1, l, one.h),
                              .qkv = part(&w->qkv, l, one.qkv),
                              .att = part(&w->att, l, one.att),
                              .fc = part(&w->fc, l, one.fc)};
    for (int32_t i = 0; i < TF_N_SITE; i++)
        a.low[i] = part(&w->low[i], l, one.low[i]);
    const int32_t attention = rlhf__tf_mix_of(&m->arch, layer) == RLHF_TF_ATTENTION;
    a.first = attention && m->arch.attn_gate ? m->bwd.mix.p : a.qkv;
    a.mixed = rlhf__tf_gates(&m->arch, layer) ? m->bwd.mixed.p : a.att;
    a.sum = a.in;
    if (w->keep) {
        if (m->open.recompute && rlhf__tf_norms_sums(&m->arch)) a.sum = w->sum.p;
        a.mid = part(&w->mid, l, one.stream);
        a.out = part(&w->in, (uint64_t)layer + 1, one.stream);
        a.h2 = w->lean ? a.h1 : part(&w->h2, l, one.h);
        if (!own) {
            a.h1 = a.in;
            a.h2 = a.mid;
        }
        a.stats1 = part(&w->stats1, l, one.stats);
        a.stats2 = part(&w->stats2, l, one.stats);
        a.lse = part(&w->lse, l, one.lse);
        a.ac = w->lean ? m->bwd.wide.p : part(&w->ac, l, one.inner);
        for (uint64_t k = 0; after && k < 2; k++) {
            a.branch[k] = part(&w->branch, 2 * l + k, one.stream);
            a.branch_stats[k] = part(&w->branch_stats, 2 * l + k, one.stats);
        }
        if (!m->arch.qk_norm || !attention) return a;
        const uint64_t raw = l ? (uint64_t)rlhf__tf_attention_index(&m->arch, layer) : 0;
        a.raw = part(&w->raw, raw, one.raw);
        a.raw_stats = part(&w->raw_stats, raw, one.raw_stats);
        return a;
    }
    if (after) {
        a.branch[0] = a.branch[1] = w->branch.p;
        a.normed = part(&w->branch, 1, one.stream);
    }
    a.mid = rlhf__tf_norms_sums(&m->arch) ? w->mid.p : a.in;
    a.out = a.in;
    a.h2 = a.h1;
    a.ac = m->arch.gated ? w->ac.p : a.fc;
    if (!own) {
        a.h1 = a.in;
        a.h2 = a.mid;
    }
    return a;
}

// ---- steps ----

// out = norm(x). If stats is not NULL, it receives the values for the backward pass.
static rlhf_status norm(const struct pass *p, rlhf_dev out, int32_t dtype, rlhf_dev stats,
                        rlhf_dev x, int32_t slot) {
    return rlhf__tf_norm(p->m, rlhf__tf_layer(p->m, p->layer, slot), out, dtype, stats, x, p->rows);
}

// Copies the stream and converts it to the act dtype.
static rlhf_status lower(const struct pass *p, rlhf_dev h, rlhf_dev stream) {
    if (h == stream) return RLHF_OK;
    return p->c->convert(p->c->ctx, h, p->m->dtype, stream, RLHF_F32,
                         (uint64_t)p->rows * (uint64_t)p->n.d);
}

static rlhf_dev bias(const struct pass *p, enum rlhf__tf_site site) {
    const struct rlhf__tf_tensor *b = rlhf__tf_layer(p->m, p->layer, rlhf__tf_site_slot(site) + 1);
    return b->n ? b->value : NULL;
}

static const rlhf_weight *weight(const struct pass *p, enum rlhf__tf_site site) {
    return p->m->w[p->layer].of[site];
}

// Computes A x of the product's adapter. Sets *low to the adapter, or to NULL if it is absent or
// disabled.
static rlhf_status adapter_in(const struct pass *p, const struct rlhf__tf_acts *a, rlhf_dev x,
                              enum rlhf__tf_site site, const struct rlhf__tf_low **low) {
    *low = p->w->plain ? NULL : rlhf__tf_low_of(p->m, p->layer, site);
    return *low ? rlhf__tf_low_in(p->m, *low, a->low[site], x, p->rows) : RLHF_OK;
}

// out (+)= x W + b + the output of the adapter `low`.
static rlhf_status linear_low(const struct pass *p, rlhf_dev out, int32_t dtype, int32_t accumulate,
                              const struct rlhf__tf_acts *a, rlhf_dev x,
                              const struct rlhf__tf_low *low, enum rlhf__tf_site site) {
    const rlhf_linear_sum s = {.size = sizeof s,
                               .rows = p->rows,
                               .out_dtype = dtype,
                               .accumulate = accumulate,
                               .out = out,
                               .x = x,
                               .x2 = a->low[site],
                               .w = weight(p, site),
                               .w2 = low->up,
                               .bias = bias(p, site)};
    return p->c->linear_sum(p->c->ctx, &s);
}

// out = x W + b.
static rlhf_status linear_as(const struct pass *p, rlhf_dev out, int32_t dtype,
                             const struct rlhf__tf_acts *a, rlhf_dev x, enum rlhf__tf_site site) {
    const struct rlhf__tf_low *low;
    RLHF_TRY(adapter_in(p, a, x, site, &low));
    if (low) return linear_low(p, out, dtype, 0, a, x, low, site);
    return p->c->linear(p->c->ctx, out, dtype, 0, x, weight(p, site), bias(p, site), p->rows);
}

// out = x W + b in the act dtype.
static rlhf_status linear(const struct pass *p, rlhf_dev out, const struct rlhf__tf_acts *a,
                          rlhf_dev x, enum rlhf__tf_site site) {
    return linear_as(p, out, p->m->dtype, a, x, site);
}

// out = stream + x W + b; out may be the stream itself.
static rlhf_status linear_add(const struct pass *p, rlhf_dev out, rlhf_dev stream,
                              const struct rlhf__tf_acts *a, rlhf_dev x, enum rlhf__tf_site site) {
    const rlhf_compute *c = p->c;
    const uint64_t bytes = (uint64_t)p->rows * (uint64_t)p->n.d * sizeof(float);
    const struct rlhf__tf_low *low;
    RLHF_TRY(adapter_in(p, a, x, site, &low));
    if (!low && out != stream && RLHF_COMPUTE_HAS(c, linear_add))
        return c->linear_add(c->ctx, out, stream, x, weight(p, site), bias(p, site), p->rows);
    if (out != stream) RLHF_TRY(c->copy(c->ctx, out, stream, bytes));
    if (low) return linear_low(p, out, RLHF_F32, 1, a, x, low, site);
    return c->linear(c->ctx, out, RLHF_F32, 1, x, weight(p, site), bias(p, site), p->rows);
}

// The input h of a block's first product: the norm of the stream or, without such norms, the stream
// itself in the act dtype.
static rlhf_status block_in(const struct pass *p, rlhf_dev h, rlhf_dev stats, rlhf_dev stream,
                            int32_t slot) {
    if (!rlhf__tf_norms_before(&p->m->arch)) return lower(p, h, stream);
    return norm(p, h, p->m->dtype, stats, stream, slot);
}

// The end of a block: out = stream + x W + b or, with norms of the blocks' outputs, stream + norm(x
// W + b). block 0 is attention, 1 the MLP.
static rlhf_status block_add(const struct pass *p, rlhf_dev out, rlhf_dev stream,
                             const struct rlhf__tf_acts *a, rlhf_dev x, enum rlhf__tf_site site,
                             int32_t block) {
    const int32_t slot = block ? RLHF_TF_P2_G : RLHF_TF_P1_G;
    const uint64_t n = (uint64_t)p->rows * (uint64_t)p->n.d;
    const rlhf_dev to = out == stream ? a->normed : out;
    if (!rlhf__tf_norms_after(&p->m->arch)) return linear_add(p, out, stream, a, x, site);
    RLHF_TRY(linear_as(p, a->branch[block], RLHF_F32, a, x, site));
    RLHF_TRY(norm(p, to, RLHF_F32, a->branch_stats[block], a->branch[block], slot));
    return p->c->add(p->c->ctx, out, out == stream ? to : stream, RLHF_F32, n);
}

static rlhf_status act(const struct pass *p, rlhf_dev out, rlhf_dev x) {
    if (p->m->arch.gated)
        return p->c->gate(p->c->ctx, out, x, p->m->arch.act, p->m->dtype, p->rows, p->n.inner);
    return p->c->act(p->c->ctx, out, x, p->m->arch.act, p->m->dtype,
                     (uint64_t)p->rows * (uint64_t)p->n.inner);
}

// ---- layers ----

// Waits for the values of a product's slots, which may include a norm (rlhf__tf_site_first).
static rlhf_status receive(const struct pass *p, enum rlhf__tf_site site) {
    return rlhf__tf_weights_receive(p->m, p->layer, site, p->f);
}

static rlhf_status attention_block(const struct pass *p, const struct rlhf__tf_acts *a) {
    RLHF_TRY(receive(p, TF_SITE_QKV));
    RLHF_TRY(block_in(p, a->h1, a->stats1, a->in, RLHF_TF_N1_G));
    RLHF_TRY(linear(p, a->first, a, a->h1, TF_SITE_QKV));
    RLHF_TRY(rlhf__tf_mix(p->m, p->w, p->gen, p->layer, a));
    RLHF_TRY(receive(p, TF_SITE_PROJ));
    return block_add(p, a->mid, a->in, a, a->mixed, TF_SITE_PROJ, 0);
}

// Computes the MLP except its last product. Unless a norm reads that product's output, the backward
// pass does not need it.
static rlhf_status mlp_but_last(const struct pass *p, const struct rlhf__tf_acts *a) {
    RLHF_TRY(receive(p, TF_SITE_FC));
    RLHF_TRY(block_in(p, a->h2, a->stats2, a->mid, RLHF_TF_N2_G));
    RLHF_TRY(linear(p, a->fc, a, a->h2, TF_SITE_FC));
    return act(p, a->ac, a->fc);
}

static rlhf_status mlp_block(const struct pass *p, const struct rlhf__tf_acts *a) {
    RLHF_TRY(mlp_but_last(p, a));
    RLHF_TRY(receive(p, TF_SITE_OUT));
    return block_add(p, a->out, a->mid, a, a->ac, TF_SITE_OUT, 1);
}

static rlhf_status both_blocks(const struct pass *p, const struct rlhf__tf_acts *a) {
    RLHF_TRY(attention_block(p, a));
    return mlp_block(p, a);
}

// With RLHF_TF_NORM_SUMS.
static rlhf_status sums_layer(const struct pass *p, const struct rlhf__tf_acts *a) {
    RLHF_TRY(receive(p, TF_SITE_QKV));
    RLHF_TRY(lower(p, a->h1, a->in));
    RLHF_TRY(linear(p, a->qkv, a, a->h1, TF_SITE_QKV));
    RLHF_TRY(rlhf__tf_mix(p->m, p->w, p->gen, p->layer, a));
    RLHF_TRY(receive(p, TF_SITE_PROJ));
    RLHF_TRY(linear_add(p, a->sum, a->in, a, a->att, TF_SITE_PROJ));
    RLHF_TRY(norm(p, a->mid, RLHF_F32, a->stats1, a->sum, RLHF_TF_N1_G));
    RLHF_TRY(receive(p, TF_SITE_FC));
    RLHF_TRY(lower(p, a->h2, a->mid));
    RLHF_TRY(linear(p, a->fc, a, a->h2, TF_SITE_FC));
    RLHF_TRY(act(p, a->ac, a->fc));
    RLHF_TRY(receive(p, TF_SITE_OUT));
    RLHF_TRY(linear_add(p, a->mid, a->mid, a, a->ac, TF_SITE_OUT));
    return norm(p, a->out, RLHF_F32, a->stats2, a->mid, RLHF_TF_N2_G);
}

rlhf_status rlhf__tf_embed(const struct rlhf__tf *m, rlhf_dev out, rlhf_dev ids, rlhf_dev pos,
                           uint32_t rows) {
    const rlhf_compute *c = m->c;
    const double scale = rlhf__tf_embed_scale(m);
    if (m->table) return c->embed_weight(c->ctx, out, ids, m->table, scale, rows);
    return c->embed(c->ctx, out, ids, pos, m->tensors[RLHF_TF_WTE].value,
                    pos ? m->tensors[RLHF_TF_WPE].value : NULL, scale, rows, m->arch.d);
}

static rlhf_status embed(const struct pass *p) {
    struct rlhf__tf *m = p->m;
    const struct rlhf__tf_acts first = rlhf__tf_acts(m, p->w, 0);
    const int32_t sums = rlhf__tf_norms_sums(&m->arch);
    rlhf_dev sum = !sums ? first.in : p->w->keep ? p->w->emb.p : first.mid;
    RLHF_TRY(rlhf__tf_embed(m, sum, p->w->rows.ids,
                            m->arch.rotary.frequency ? NULL : p->w->rows.pos, p->rows));
    if (!sums) return RLHF_OK;
    return rlhf__tf_norm(m, rlhf__tf_global(m, RLHF_TF_EMB_G), first.in, RLHF_F32,
                         p->w->keep ? p->w->emb_stats.p : NULL, sum, p->rows);
}

rlhf_status rlhf__tf_layer_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer) {
    const struct pass p = {m, w, m->c, NULL, rlhf_tf_widths(&m->arch), layer, w->rows.total, NULL};
    const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, layer);
    const struct rlhf__tf_low *low;
    if (rlhf__tf_norms_sums(&m->arch)) return sums_layer(&p, &a);
    RLHF_TRY(attention_block(&p, &a));
    if (rlhf__tf_norms_after(&m->arch)) return mlp_block(&p, &a);
    RLHF_TRY(mlp_but_last(&p, &a));
    return adapter_in(&p, &a, a.ac, TF_SITE_OUT, &low);
}

rlhf_status rlhf__tf_input_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer,
                                 enum rlhf__tf_site site) {
    const struct pass p = {m, w, m->c, NULL, rlhf_tf_widths(&m->arch), layer, w->rows.total, NULL};
    const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, layer);
    if (site == TF_SITE_PROJ) return rlhf__tf_mixed_again(m, layer, &a, p.rows);
    if (!w->lean) return RLHF_OK;
    if (site == TF_SITE_QKV) return block_in(&p, a.h1, NULL, a.in, RLHF_TF_N1_G);
    if (site == TF_SITE_FC) return block_in(&p, a.h2, NULL, a.mid, RLHF_TF_N2_G);
    return act(&p, a.ac, a.fc);
}

rlhf_status rlhf__tf_trunk_from(struct rlhf__tf *m, struct rlhf__tf_work *w, int32_t layer,
                                int32_t mid) {
    struct pass p = {m, w, m->c, NULL, rlhf_tf_widths(&m->arch), layer, w->rows.total, NULL};
    for (; p.layer < m->arch.n_layer; p.layer++) {
        const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, p.layer);
        const int32_t second = mid && p.layer == layer;
        RLHF_TRY(second ? mlp_block(&p, &a) : both_blocks(&p, &a));
        w->x = a.out;
    }
    return RLHF_OK;
}

rlhf_status rlhf__tf_trunk(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_gen *gen,
                           const rlhf_forward *f) {
    struct pass p = {m, w, m->c, gen, rlhf_tf_widths(&m->arch), 0, w->rows.total, f};
    RLHF_TRY(rlhf__tf_trunk_reserve(m, w));
    RLHF_TRY(rlhf__tf_weights_receive_globals(m, f));
    RLHF_TRY(embed(&p));
    for (p.layer = 0; p.layer < m->arch.n_layer; p.layer++) {
        const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, p.layer);
        RLHF_TRY(rlhf__tf_norms_sums(&m->arch) ? sums_layer(&p, &a) : both_blocks(&p, &a));
        w->x = a.out;
    }
    return RLHF_OK;
}
