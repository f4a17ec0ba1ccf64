// transformer/tap.c: implements the tap (rlhf/draft/tap.h) for all model families. The tap has a
// separate forward pass with separate buffers, in which every layer keeps its activations.
#include "internal.h"

#include <rlhf/draft/tap.h>

#include <string.h>

enum { HEAD_ROWS = 16 }; // rows computed at a time if the values of a head have been freed

// ---- the points of a model ----

static rlhf_status tap_info(void *self, rlhf_tap_info *out) {
    const struct rlhf__tf *m = self;
    const struct rlhf_tf_arch *a = &m->arch;
    const rlhf_tap_info i = {.size = sizeof i,
                             .norm = a->norm == RLHF_TF_NORM_RMS ? RLHF_TAP_NORM_RMS
                                                                 : RLHF_TAP_NORM_LAYER,
                             .norm_eps = m->stream_eps,
                             .n_layer = a->n_layer,
                             .n_head = a->n_head,
                             .n_kv_head = a->n_kv_head,
                             .head_dim = a->head_dim,
                             .d_model = a->d,
                             .n_vocab = rlhf__tf_outputs(m),
                             .positions = !a->rotary.frequency,
                             .n_labels = m->open.n_labels > 0 ? m->open.n_labels : 0,
                             .value_kind = m->open.value_kind,
                             .value_hidden = m->open.value_kind == RLHF_VALUE_MLP ? 4 * a->d : 0,
                             .logit_softcap = a->softcap};
    return rlhf_copy_out(out, &i, sizeof i, RLHF_SIZE_TO(rlhf_tap_info, value_hidden));
}

// ---- running ----

static rlhf_status check_run(struct rlhf__tf *m, const rlhf_batch *b, const rlhf_tap_run *r) {
    const int32_t layers = m->arch.n_layer, end = r->point == RLHF_TAP_END;
    RLHF_TRY(rlhf__tf_batch_check(m, b, 0));
    if (b->prefix || b->turn)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "tap: rows with prefixes or turns");
    if (m->open.recompute)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "tap: the model recomputes its activations");
    if (!r->point) return RLHF_OK;
    if (r->point != RLHF_TAP_IN && r->point != RLHF_TAP_MID && !end)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: a run cannot begin at point %d", r->point);
    if (r->layer < 0 || r->layer >= (end ? 1 : layers) || !r->stream)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: a run from layer %d of %d, %s a stream",
                             r->layer, layers, r->stream ? "with" : "without");
    return RLHF_OK;
}

static rlhf_status run_from(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_tap_run *r) {
    const int32_t end = r->point == RLHF_TAP_END, mid = r->point == RLHF_TAP_MID;
    const uint64_t bytes = (uint64_t)w->rows.total * (uint64_t)m->arch.d * sizeof(float);
    const int32_t layer = end ? m->arch.n_layer - 1 : r->layer;
    RLHF_TRY(rlhf__tf_trunk_reserve(m, w));
    const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, layer);
    m->tap.first = end ? m->arch.n_layer : layer;
    m->tap.mid = mid;
    w->x = a.out;
    RLHF_TRY(m->c->upload(m->c->ctx, end ? a.out : mid ? a.mid : a.in, r->stream, bytes));
    return rlhf__tf_trunk_from(m, w, m->tap.first, mid);
}

static rlhf_status tap_run(void *self, const rlhf_batch *batch, const rlhf_tap_run *run) {
    struct rlhf__tf *m = self;
    struct rlhf__tf_work *w = &m->tap.work;
    rlhf_batch b;
    rlhf_tap_run r;
    m->tap.ran = 0;
    RLHF_TRY(
        rlhf__tf_copy_in(m, "rlhf_batch", &b, sizeof b, batch, RLHF_SIZE_TO(rlhf_batch, prefix)));
    RLHF_TRY(
        rlhf__tf_copy_in(m, "rlhf_tap_run", &r, sizeof r, run, RLHF_SIZE_TO(rlhf_tap_run, stream)));
    RLHF_TRY(check_run(m, &b, &r));
    const struct rlhf__tf_layout l = {.n = b.n,
                                      .total = b.total,
                                      .ids = b.ids,
                                      .offset = b.offset,
                                      .pooling = rlhf__tf_pooling(m)};
    w->keep = m->tap.kept = r.keep != 0;
    RLHF_TRY(rlhf__tf_rows_upload(m, w, &l));
    m->tap.first = m->tap.mid = 0;
    RLHF_TRY(r.point ? run_from(m, w, &r) : rlhf__tf_trunk(m, w, NULL, NULL));
    m->tap.ran = 1;
    return RLHF_OK;
}

// ---- reading ----

// The location of a point on the device: rows of `width` elements, `stride` apart.
struct place {
    rlhf_dev p;
    int32_t dtype;
    uint64_t rows, width, stride;
};

static struct place dense(rlhf_dev p, int32_t dtype, uint64_t rows, int32_t width) {
    return (struct place){p, dtype, rows, (uint64_t)width, (uint64_t)width};
}

static int32_t is_scalar(int32_t point) {
    return point >= RLHF_TAP_SCALE && point <= RLHF_TAP_SOFTCAP;
}

// A weight. If p is NULL, the model does not have it.
static struct place constant(struct rlhf__tf *m, int32_t point, int32_t layer) {
    const struct rlhf__tf_tensor *t =
        point == RLHF_TAP_OUT_BIAS    ? rlhf__tf_layer(m, layer, RLHF_TF_PROJ_B)
        : point == RLHF_TAP_MLP_BIAS  ? rlhf__tf_layer(m, layer, RLHF_TF_OUT_B)
        : point == RLHF_TAP_OUT_NORM  ? rlhf__tf_layer(m, layer, RLHF_TF_P1_G)
        : point == RLHF_TAP_NORM_GAIN ? rlhf__tf_global(m, RLHF_TF_FINAL_G)
                                      : rlhf__tf_global(m, RLHF_TF_FINAL_B);
    const int32_t normed = point == RLHF_TAP_MLP_BIAS && rlhf__tf_norms_after(&m->arch);
    return dense(t->n && !normed ? t->value : NULL, RLHF_F32, 1, m->arch.d);
}

// A gain is stored without the offset of its norm.
static void add_offset(const struct rlhf__tf *m, int32_t point, float *gain) {
    const double offset = m->arch.norm_offset;
    if (point != RLHF_TAP_NORM_GAIN && point != RLHF_TAP_OUT_NORM) return;
    for (int32_t i = 0; offset != 0.0 && i < m->arch.d; i++)
        gain[i] = (float)((double)gain[i] + offset);
}

// Embeddings are recomputed when they are read.
static rlhf_status embedding(struct rlhf__tf *m, int32_t point, struct place *out) {
    const struct rlhf__tf_rows *r = &m->tap.work.rows;
    const int32_t d = m->arch.d;
    *out = dense(NULL, RLHF_F32, r->total, d);
    if (point == RLHF_TAP_POSITION && m->arch.rotary.frequency) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &m->tap.out, out->rows * out->width * sizeof(float)));
    out->p = m->tap.out.p;
    if (point == RLHF_TAP_POSITION)
        return m->c->gather(m->c->ctx, out->p, rlhf__tf_global(m, RLHF_TF_WPE)->value, r->pos,
                            r->total, d, RLHF_F32);
    return rlhf__tf_embed(m, out->p, r->ids, NULL, r->total);
}

static struct place activation(struct rlhf__tf *m, int32_t point, int32_t layer) {
    const struct rlhf__tf_work *w = &m->tap.work;
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const uint64_t rows = w->rows.total;
    if (point == RLHF_TAP_END) return dense(w->x, RLHF_F32, rows, n.d);
    const struct rlhf__tf_acts a = rlhf__tf_acts(m, w, layer);
    const struct rlhf__tf_qkv s = rlhf__tf_qkv(m, a.qkv);
    struct place at = dense(point == RLHF_TAP_IN ? a.in : a.mid, RLHF_F32, rows, n.d);
    if (point == RLHF_TAP_HEADS) at = dense(a.att, m->dtype, rows, n.q);
    if (point == RLHF_TAP_Q) at = (struct place){s.q, m->dtype, rows, (uint64_t)n.q, 0};
    if (point == RLHF_TAP_K) at = (struct place){s.k, m->dtype, rows, (uint64_t)n.kv, 0};
    if (point == RLHF_TAP_V) at = (struct place){s.v, m->dtype, rows, (uint64_t)n.kv, 0};
    if (!at.stride) at.stride = (uint64_t)n.qkv;
    return at;
}

// Copies a point's values to the host as f32.
static rlhf_status fetch(struct rlhf__tf *m, const struct place *at, float *out) {
    const uint64_t n = (at->rows - 1) * at->stride + at->width;
    void *tmp = out;
    rlhf_dev from = at->p;
    if (at->dtype != RLHF_F32) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->tap.out, n * sizeof(float)));
        from = m->tap.out.p;
        RLHF_TRY(m->c->convert(m->c->ctx, from, RLHF_F32, at->p, at->dtype, n));
    }
    if (at->stride != at->width) RLHF_TRY(rlhf__tf_host_tmp(m, n * sizeof(float), &tmp));
    RLHF_TRY(m->c->download(m->c->ctx, tmp, from, n * sizeof(float)));
    const float *row = tmp;
    for (uint64_t r = 0; tmp != out && r < at->rows; r++, row += at->stride)
        memcpy(out + r * at->width, row, at->width * sizeof *out);
    return RLHF_OK;
}

// 1 if the last run computed this point of the layer and kept it.
static int32_t is_there(const struct rlhf__tf *m, int32_t point, int32_t layer) {
    const struct rlhf__tf_tap *t = &m->tap;
    if (!t->ran) return 0;
    if (point == RLHF_TAP_TOKEN || point == RLHF_TAP_POSITION || point == RLHF_TAP_END) return 1;
    if (!t->kept || layer < t->first) return 0;
    return !(t->mid && layer == t->first) || point == RLHF_TAP_MID;
}

static rlhf_status tap_read(void *self, int32_t point, int32_t layer, float *out, uint64_t count) {
    struct rlhf__tf *m = self;
    struct place at = {NULL, RLHF_F32, 1, 1, 1};
    if (point < RLHF_TAP_TOKEN || point > RLHF_TAP_OUT_NORM || layer < 0 ||
        layer >= m->arch.n_layer)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: point %d of layer %d", point, layer);
    if (point < RLHF_TAP_OUT_BIAS && !is_there(m, point, layer))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: no run has kept point %d of layer %d", point,
                             layer);
    if (point == RLHF_TAP_TOKEN || point == RLHF_TAP_POSITION)
        RLHF_TRY(embedding(m, point, &at));
    else if (point < RLHF_TAP_OUT_BIAS)
        at = activation(m, point, layer);
    else if (!is_scalar(point))
        at = constant(m, point, layer);
    if (!at.p && !is_scalar(point))
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "tap: this model has no point %d", point);
    if (count != at.rows * at.width)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: point %d has %llu values, not %llu", point,
                             (unsigned long long)at.rows * at.width, (unsigned long long)count);
    if (at.p) {
        RLHF_TRY(fetch(m, &at, out));
        add_offset(m, point, out);
        return RLHF_OK;
    }
    const rlhf_attn g = rlhf__tf_attn_geometry(m, layer, 0);
    *out = (float)(point == RLHF_TAP_SCALE    ? g.scale
                   : point == RLHF_TAP_WINDOW ? (double)g.window
                                              : g.softcap);
    return RLHF_OK;
}

// ---- linear maps ----

// Copies x, f32 [n], to the device in `dtype`, at m->tap.in.
static rlhf_status send(struct rlhf__tf *m, const float *x, int32_t dtype, uint64_t n) {
    const rlhf_compute *c = m->c;
    const uint64_t bytes = n * sizeof(float);
    RLHF_TRY(rlhf__tf_reserve(m, &m->tap.in, bytes));
    if (dtype == RLHF_F32) return c->upload(c->ctx, m->tap.in.p, x, bytes);
    RLHF_TRY(rlhf__tf_reserve(m, &m->tap.out, bytes));
    RLHF_TRY(c->upload(c->ctx, m->tap.out.p, x, bytes));
    return c->convert(c->ctx, m->tap.in.p, dtype, m->tap.out.p, RLHF_F32, n);
}

static rlhf_status tap_project(void *self, int32_t layer, const float *x, uint32_t rows,
                               float *out) {
    struct rlhf__tf *m = self;
    const rlhf_compute *c = m->c;
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const uint64_t bytes = (uint64_t)rows * (uint64_t)n.d * sizeof(float);
    if (layer < 0 || layer >= m->arch.n_layer || !rows)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: project() of %u rows in layer %d", rows,
                             layer);
    const struct rlhf__tf_low *low = rlhf__tf_low_of(m, layer, TF_SITE_PROJ);
    RLHF_TRY(send(m, x, m->dtype, (uint64_t)rows * (uint64_t)n.q));
    RLHF_TRY(rlhf__tf_reserve(m, &m->tap.out, bytes));
    RLHF_TRY(c->linear(c->ctx, m->tap.out.p, RLHF_F32, 0, m->tap.in.p, m->w[layer].of[TF_SITE_PROJ],
                       NULL, rows));
    if (low) {
        RLHF_TRY(rlhf__tf_reserve(m, &m->tap.low,
                                  rows * rlhf__tf_low_width(m, TF_SITE_PROJ) * rlhf__tf_esz(m)));
        RLHF_TRY(rlhf__tf_low_in(m, low, m->tap.low.p, m->tap.in.p, rows));
        RLHF_TRY(c->linear(c->ctx, m->tap.out.p, RLHF_F32, 1, m->tap.low.p, low->up, NULL, rows));
    }
    return c->download(c->ctx, out, m->tap.out.p, bytes);
}

// A head: its values, which may have been freed, and its packed weight [k, n].
struct map {
    const struct rlhf__tf_tensor *value, *bias;
    const rlhf_weight *packed;
    int32_t dtype, k, n;
};

static rlhf_status find_head(struct rlhf__tf *m, int32_t head, struct map *out) {
    const int32_t d = m->arch.d, mlp = m->open.value_kind == RLHF_VALUE_MLP;
    *out = (struct map){NULL, NULL, NULL, RLHF_F32, d, 0};
    if (head == RLHF_TAP_LM && rlhf__tf_has_lm(m)) {
        RLHF_TRY(rlhf__tf_lm_ready(m));
        *out = (struct map){rlhf__tf_global(m, m->arch.tied ? RLHF_TF_WTE : RLHF_TF_LM),
                            NULL,
                            m->lm,
                            m->dtype,
                            d,
                            rlhf__tf_outputs(m)};
    } else if (head == RLHF_TAP_SCORE && m->score) {
        *out = (struct map){rlhf__tf_global(m, RLHF_TF_SCORE_W),
                            rlhf__tf_global(m, RLHF_TF_SCORE_B),
                            m->score,
                            RLHF_F32,
                            d,
                            m->open.n_labels};
    } else if (head == RLHF_TAP_VALUE && m->v2) {
        *out = (struct map){rlhf__tf_global(m, RLHF_TF_V2_W),
                            rlhf__tf_global(m, RLHF_TF_V2_B),
                            m->v2,
                            RLHF_F32,
                            mlp ? 4 * d : d,
                            1};
    } else if (head == RLHF_TAP_VALUE_HIDDEN && m->v1) {
        *out = (struct map){rlhf__tf_global(m, RLHF_TF_V1_W),
                            rlhf__tf_global(m, RLHF_TF_V1_B),
                            m->v1,
                            RLHF_F32,
                            d,
                            4 * d};
    }
    if (out->n) return RLHF_OK;
    return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "tap: this model has no head %d", head);
}

// Recovers rows of a matrix after its values have been freed: multiplies rows of the identity with
// the packed matrix.
static rlhf_status unpack_rows(struct rlhf__tf *m, const struct map *h, const int32_t *row,
                               uint32_t n, float *out) {
    const uint64_t k = (uint64_t)h->k, wide = (uint64_t)h->n;
    for (uint64_t from = 0; from < k; from += HEAD_ROWS) {
        const uint32_t some = (uint32_t)(k - from < HEAD_ROWS ? k - from : HEAD_ROWS);
        void *tmp;
        RLHF_TRY(rlhf__tf_host_tmp(m, some * (k > wide ? k : wide) * sizeof(float), &tmp));
        float *x = tmp;
        memset(x, 0, some * k * sizeof *x);
        for (uint32_t i = 0; i < some; i++)
            x[i * k + from + i] = 1;
        RLHF_TRY(send(m, x, h->dtype, some * k));
        RLHF_TRY(rlhf__tf_reserve(m, &m->tap.out, some * wide * sizeof(float)));
        RLHF_TRY(
            m->c->linear(m->c->ctx, m->tap.out.p, RLHF_F32, 0, m->tap.in.p, h->packed, NULL, some));
        RLHF_TRY(m->c->download(m->c->ctx, x, m->tap.out.p, some * wide * sizeof(float)));
        for (uint32_t i = 0; i < some; i++)
            for (uint32_t r = 0; r < n; r++)
                out[r * k + from + i] = x[i * wide + (uint64_t)row[r]];
    }
    return RLHF_OK;
}

static rlhf_status tap_head(void *self, int32_t head, const int32_t *row, uint32_t n, float *out,
                            float *bias) {
    struct rlhf__tf *m = self;
    struct map h;
    RLHF_TRY(find_head(m, head, &h));
    const uint64_t bytes = (uint64_t)h.k * sizeof(float);
    for (uint32_t i = 0; i < n; i++)
        if (row[i] < 0 || row[i] >= h.n)
            return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: row %d of head %d, which has %d", row[i],
                                 head, h.n);
    for (uint32_t i = 0; bias && i < n; i++) {
        bias[i] = 0;
        if (h.bias && h.bias->n)
            RLHF_TRY(m->c->download(m->c->ctx, &bias[i],
                                    rlhf_dev_at(h.bias->value, (uint64_t)row[i] * sizeof *bias),
                                    sizeof *bias));
    }
    const int there = h.value && h.value->value;
    if (!there) RLHF_TRY(unpack_rows(m, &h, row, n, out));
    for (uint32_t i = 0; there && i < n; i++)
        RLHF_TRY(m->c->download(m->c->ctx, out + (uint64_t)i * (uint64_t)h.k,
                                rlhf_dev_at(h.value->value, (uint64_t)row[i] * bytes), bytes));
    const double scale = head == RLHF_TAP_LM ? m->arch.logit_scale : 0.0;
    for (uint64_t i = 0; scale != 0.0 && i < n * (uint64_t)h.k; i++)
        out[i] = (float)(out[i] * scale);
    return RLHF_OK;
}

static rlhf_status tap_logits(void *self, uint32_t first, uint32_t n, float *out) {
    struct rlhf__tf *m = self;
    struct rlhf__tf_work *w = &m->tap.work;
    const rlhf_compute *c = m->c;
    const uint64_t d = (uint64_t)m->arch.d, wide = (uint64_t)rlhf__tf_outputs(m);
    struct map h;
    RLHF_TRY(find_head(m, RLHF_TAP_LM, &h));
    if (!m->tap.ran || !n || first >= w->rows.total || n > w->rows.total - first)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "tap: logits of tokens %u to %u of a run of %u",
                             first, first + n, m->tap.ran ? w->rows.total : 0);
    RLHF_TRY(rlhf__tf_reserve(m, &m->tap.in, n * d * sizeof(float)));
    RLHF_TRY(rlhf__tf_reserve(m, &w->rf, n * d * sizeof(float)));
    RLHF_TRY(rlhf__tf_reserve(m, &m->tap.out, n * wide * sizeof(float)));
    RLHF_TRY(rlhf__tf_norm(m, rlhf__tf_global(m, RLHF_TF_FINAL_G), w->rf.p, RLHF_F32, NULL,
                           rlhf_dev_at(w->x, first * d * sizeof(float)), n));
    rlhf_dev x = w->rf.p;
    if (m->dtype != RLHF_F32) {
        x = m->tap.in.p;
        RLHF_TRY(c->convert(c->ctx, x, m->dtype, w->rf.p, RLHF_F32, n * d));
    }
    RLHF_TRY(c->linear(c->ctx, m->tap.out.p, RLHF_F32, 0, x, m->lm, NULL, n));
    RLHF_TRY(c->download(c->ctx, out, m->tap.out.p, n * wide * sizeof(float)));
    const double scale = m->arch.logit_scale;
    for (uint64_t i = 0; scale != 0.0 && i < n * wide; i++)
        out[i] = (float)((double)out[i] * scale);
    return RLHF_OK;
}

static const rlhf_tap_ops tap_ops = {.size = sizeof(rlhf_tap_ops),
                                     .info = tap_info,
                                     .run = tap_run,
                                     .read = tap_read,
                                     .project = tap_project,
                                     .head = tap_head,
                                     .logits = tap_logits};

const void *rlhf_tf_extension(void *self, const char *id) {
    const struct rlhf__tf *m = self;
    if (!m || strcmp(id, RLHF_EXT_TAP) != 0) return NULL;
    const struct rlhf_tf_arch *a = &m->arch;
    return a->causal && !rlhf__tf_norms_sums(a) && !a->mix_layers && !a->attn_gate ? &tap_ops
                                                                                   : NULL;
}
