// tests/models/recorder.c: see recorder.h.
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    COPY,
    ZERO,
    CONVERT,
    LINEAR,
    LINEAR_ADD,
    LINEAR_SUM,
    EMBED,
    EMBED_WEIGHT,
    NORM,
    RMS,
    ACT,
    GATE,
    ROPE,
    ADD,
    GATHER,
    KV,
    ATTN,
    CONV,
    DELTA,
    GATED_NORM,
    MULTIPLY,
    SAMPLE
};

// A call with all its arguments by value.
struct recorded_op {
    enum kind kind;
    int32_t i[4];
    rlhf_dev p[6];
    uint64_t n[2];
    double eps, scale;
    const rlhf_weight *w;
    rlhf_ragged rows;
    rlhf_attn attn;
    rlhf_rope rope;
    rlhf_states states;
    int32_t has_states;
    rlhf_conv conv;
    rlhf_delta delta;
    rlhf_gated_norm gated_norm;
    rlhf_columns columns;
    rlhf_linear_sum sum;
    rlhf_lm_sample sample;
    rlhf_dist dist, logp_dist;
};

static rlhf_status run(const rlhf_compute *c, const struct recorded_op *o) {
    const rlhf_dev *p = o->p;
    const int32_t *i = o->i;
    const uint32_t rows = (uint32_t)o->n[0];
    switch (o->kind) {
    case COPY:
        return c->copy(c->ctx, p[0], p[1], o->n[0]);
    case ZERO:
        return c->zero(c->ctx, p[0], o->n[0]);
    case CONVERT:
        return c->convert(c->ctx, p[0], i[0], p[1], i[1], o->n[0]);
    case LINEAR:
        return c->linear(c->ctx, p[0], i[0], i[1], p[1], o->w, p[2], rows);
    case LINEAR_ADD:
        return c->linear_add(c->ctx, p[0], p[1], p[2], o->w, p[3], rows);
    case LINEAR_SUM:
        return c->linear_sum(c->ctx, &o->sum);
    case EMBED:
        return c->embed(c->ctx, p[0], p[1], p[2], p[3], p[4], o->scale, rows, i[0]);
    case EMBED_WEIGHT:
        return c->embed_weight(c->ctx, p[0], p[1], o->w, o->scale, rows);
    case NORM:
        return c->norm(c->ctx, p[0], i[0], p[1], p[2], p[3], p[4], o->eps, rows, i[1]);
    case RMS:
        return c->rms_norm(c->ctx, p[0], i[0], p[1], p[2], p[3], o->scale, o->eps, rows, i[1]);
    case GATE:
        return c->gate(c->ctx, p[0], p[1], i[0], i[1], rows, i[2]);
    case ROPE:
        return c->rope(c->ctx, &o->rope, p[0], rows);
    case ACT:
        return c->act(c->ctx, p[0], p[1], i[0], i[1], o->n[0]);
    case ADD:
        return c->add(c->ctx, p[0], p[1], i[0], o->n[0]);
    case GATHER:
        return c->gather(c->ctx, p[0], p[1], p[2], rows, i[0], i[1]);
    case KV:
        return c->kv_store(c->ctx, p[0], p[1], p[2], p[3], (int64_t)o->n[0], &o->rows, i[0], i[1]);
    case ATTN:
        return c->attention(c->ctx, &o->attn, &o->rows, p[0], p[1], p[2], p[3], p[4]);
    case CONV:
        return c->conv(c->ctx, &o->conv, &o->rows, o->has_states ? &o->states : NULL, p[0], p[1]);
    case DELTA:
        return c->delta(c->ctx, &o->delta, &o->rows, o->has_states ? &o->states : NULL, p[0], p[1],
                        p[2], p[3]);
    case GATED_NORM:
        return c->gated_norm(c->ctx, &o->gated_norm, p[0], p[1], p[2], p[3], rows);
    case MULTIPLY:
        return c->multiply(c->ctx, &o->columns, p[0], p[1], p[2], rows);
    default: {
        rlhf_lm_sample s = o->sample;
        s.dist = &o->dist;
        s.logp_dist = &o->logp_dist;
        return c->lm_sample(c->ctx, &s);
    }
    }
}

static rlhf_status broke(struct recorder *r, const char *what) {
    if (!r->broken[0]) snprintf(r->broken, sizeof r->broken, "%s", what);
    return RLHF_E_INVALID;
}

static rlhf_status issue(void *ctx, const struct recorded_op *o) {
    struct recorder *r = ctx;
    if (!r->inside || r->what == RLHF_RECORD_RUN) return run(r->inner, o);
    if (r->what == RLHF_RECORD_REPLAY) return broke(r, "a call during a replay");
    struct recording *k = r->open;
    k->ops = realloc(k->ops, (k->n + 1) * sizeof *k->ops);
    k->ops[k->n++] = *o;
    return RLHF_OK;
}

// ---- calls that may be recorded ----

static rlhf_status conv(void *ctx, const rlhf_conv *a, const rlhf_ragged *r, const rlhf_states *s,
                        rlhf_dev y, rlhf_dev x) {
    struct recorded_op o = {
        .kind = CONV, .conv = *a, .rows = *r, .has_states = s != NULL, .p = {y, x}};
    if (s) o.states = *s;
    return issue(ctx, &o);
}
static rlhf_status delta(void *ctx, const rlhf_delta *a, const rlhf_ragged *r, const rlhf_states *s,
                         rlhf_dev out, rlhf_dev x, rlhf_dev beta, rlhf_dev alpha) {
    struct recorded_op o = {.kind = DELTA,
                            .delta = *a,
                            .rows = *r,
                            .has_states = s != NULL,
                            .p = {out, x, beta, alpha}};
    if (s) o.states = *s;
    return issue(ctx, &o);
}
static rlhf_status gated_norm(void *ctx, const rlhf_gated_norm *a, rlhf_dev out, rlhf_dev stats,
                              rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    return issue(
        ctx, &(struct recorded_op){
                 .kind = GATED_NORM, .gated_norm = *a, .p = {out, stats, x, gate}, .n = {rows}});
}
static rlhf_status multiply(void *ctx, const rlhf_columns *a, rlhf_dev out, rlhf_dev x,
                            rlhf_dev gate, uint32_t rows) {
    return issue(ctx, &(struct recorded_op){
                          .kind = MULTIPLY, .columns = *a, .p = {out, x, gate}, .n = {rows}});
}

static rlhf_status copy(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes) {
    return issue(ctx, &(struct recorded_op){.kind = COPY, .p = {dst, src}, .n = {bytes}});
}
static rlhf_status zero(void *ctx, rlhf_dev dst, uint64_t bytes) {
    return issue(ctx, &(struct recorded_op){.kind = ZERO, .p = {dst}, .n = {bytes}});
}
static rlhf_status convert(void *ctx, rlhf_dev dst, int32_t to, rlhf_dev src, int32_t from,
                           uint64_t n) {
    return issue(
        ctx, &(struct recorded_op){.kind = CONVERT, .i = {to, from}, .p = {dst, src}, .n = {n}});
}
static rlhf_status linear(void *ctx, rlhf_dev out, int32_t dtype, int32_t add, rlhf_dev x,
                          const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    return issue(ctx,
                 &(struct recorded_op){
                     .kind = LINEAR, .i = {dtype, add}, .p = {out, x, bias}, .n = {rows}, .w = w});
}
static rlhf_status linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    return issue(ctx, &(struct recorded_op){
                          .kind = LINEAR_ADD, .p = {out, add, x, bias}, .n = {rows}, .w = w});
}
static rlhf_status linear_sum(void *ctx, const rlhf_linear_sum *a) {
    return issue(ctx, &(struct recorded_op){.kind = LINEAR_SUM, .sum = *a});
}
static rlhf_status embed(void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
                         rlhf_dev wpe, double scale, uint32_t rows, int32_t d) {
    return issue(
        ctx,
        &(struct recorded_op){
            .kind = EMBED, .i = {d}, .p = {out, ids, pos, wte, wpe}, .n = {rows}, .scale = scale});
}
static rlhf_status embed_weight(void *ctx, rlhf_dev out, rlhf_dev ids, const rlhf_weight *w,
                                double scale, uint32_t rows) {
    return issue(ctx,
                 &(struct recorded_op){
                     .kind = EMBED_WEIGHT, .p = {out, ids}, .n = {rows}, .scale = scale, .w = w});
}
static rlhf_status norm(void *ctx, rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x,
                        rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d) {
    return issue(ctx, &(struct recorded_op){.kind = NORM,
                                            .i = {dtype, d},
                                            .p = {out, stats, x, gamma, beta},
                                            .n = {rows},
                                            .eps = eps});
}
static rlhf_status rms_norm(void *ctx, rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x,
                            rlhf_dev gamma, double offset, double eps, uint32_t rows, int32_t d) {
    return issue(ctx, &(struct recorded_op){.kind = RMS,
                                            .i = {dtype, d},
                                            .p = {out, stats, x, gamma},
                                            .n = {rows},
                                            .eps = eps,
                                            .scale = offset});
}
static rlhf_status gate(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                        uint32_t rows, int32_t inner) {
    return issue(ctx, &(struct recorded_op){
                          .kind = GATE, .i = {kind, dtype, inner}, .p = {out, x}, .n = {rows}});
}
static rlhf_status rope(void *ctx, const rlhf_rope *r, rlhf_dev x, uint32_t rows) {
    return issue(ctx, &(struct recorded_op){.kind = ROPE, .p = {x}, .n = {rows}, .rope = *r});
}
static rlhf_status act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n) {
    return issue(ctx,
                 &(struct recorded_op){.kind = ACT, .i = {kind, dtype}, .p = {out, x}, .n = {n}});
}
static rlhf_status add(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t dtype, uint64_t n) {
    return issue(ctx, &(struct recorded_op){.kind = ADD, .i = {dtype}, .p = {dst, src}, .n = {n}});
}
static rlhf_status gather(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d,
                          int32_t dtype) {
    return issue(
        ctx, &(struct recorded_op){.kind = GATHER, .i = {d, dtype}, .p = {out, x, idx}, .n = {n}});
}
static rlhf_status kv_store(void *ctx, rlhf_dev kc, rlhf_dev vc, rlhf_dev k, rlhf_dev v,
                            int64_t stride, const rlhf_ragged *rows, int32_t d, int32_t dtype) {
    return issue(ctx, &(struct recorded_op){.kind = KV,
                                            .i = {d, dtype},
                                            .p = {kc, vc, k, v},
                                            .n = {(uint64_t)stride},
                                            .rows = *rows});
}
static rlhf_status attention(void *ctx, const rlhf_attn *a, const rlhf_ragged *rows, rlhf_dev out,
                             rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    return issue(ctx, &(struct recorded_op){
                          .kind = ATTN, .p = {out, lse, q, k, v}, .rows = *rows, .attn = *a});
}
static rlhf_status lm_sample(void *ctx, const rlhf_lm_sample *s) {
    struct recorder *r = ctx;
    if (r->inside && !s->id) return broke(r, "a host_ output");
    return issue(ctx,
                 &(struct recorded_op){
                     .kind = SAMPLE, .sample = *s, .dist = *s->dist, .logp_dist = *s->logp_dist});
}

// ---- calls that may not ----

#define OUTSIDE(r, what)                                                                           \
    if ((r)->inside) return broke((r), what)

static rlhf_status alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    struct recorder *r = ctx;
    OUTSIDE(r, "alloc");
    return r->inner->alloc(r->inner->ctx, bytes, out);
}
static void release(void *ctx, rlhf_dev p) {
    struct recorder *r = ctx;
    if (p && r->inside) broke(r, "release");
    for (uint32_t i = 0; p && i < r->n; i++) {
        free(r->kept[i].ops);
        r->drops++;
    }
    if (p) r->n = 0;
    r->inner->release(r->inner->ctx, p);
}
static rlhf_status upload(void *ctx, rlhf_dev dst, const void *src, uint64_t bytes) {
    struct recorder *r = ctx;
    OUTSIDE(r, "upload");
    r->uploads++;
    return r->inner->upload(r->inner->ctx, dst, src, bytes);
}
static rlhf_status download(void *ctx, void *dst, rlhf_dev src, uint64_t bytes) {
    struct recorder *r = ctx;
    OUTSIDE(r, "download");
    r->downloads++;
    return r->inner->download(r->inner->ctx, dst, src, bytes);
}
static rlhf_status alloc_host(void *ctx, uint64_t bytes, void **out) {
    struct recorder *r = ctx;
    OUTSIDE(r, "alloc_host");
    return r->inner->alloc_host(r->inner->ctx, bytes, out);
}
static void release_host(void *ctx, void *p) {
    struct recorder *r = ctx;
    if (p && r->inside) broke(r, "release_host");
    r->inner->release_host(r->inner->ctx, p);
}
static rlhf_status wait_for_all(void *ctx) {
    struct recorder *r = ctx;
    OUTSIDE(r, "sync");
    r->waits++;
    return r->inner->sync(r->inner->ctx);
}
static rlhf_status weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                 rlhf_weight **out) {
    struct recorder *r = ctx;
    OUTSIDE(r, "weight_create");
    return r->inner->weight_create(r->inner->ctx, k, n, dtype, flags, out);
}
static rlhf_status weight_create_blocks(void *ctx, const rlhf_blocks *a, rlhf_weight **out) {
    struct recorder *r = ctx;
    OUTSIDE(r, "weight_create_blocks");
    return r->inner->weight_create_blocks(r->inner->ctx, a, out);
}
static rlhf_status weight_create_quantised(void *ctx, const rlhf_quantised *a, rlhf_weight **out) {
    struct recorder *r = ctx;
    OUTSIDE(r, "weight_create_quantised");
    return r->inner->weight_create_quantised(r->inner->ctx, a, out);
}
static rlhf_status weight_put(void *ctx, rlhf_weight *w, int32_t from, int32_t rows,
                              const void *blocks) {
    struct recorder *r = ctx;
    OUTSIDE(r, "weight_put");
    return r->inner->weight_put(r->inner->ctx, w, from, rows, blocks);
}
static void weight_destroy(void *ctx, rlhf_weight *w) {
    struct recorder *r = ctx;
    if (w && r->inside) broke(r, "weight_destroy");
    r->inner->weight_destroy(r->inner->ctx, w);
}
static rlhf_status weight_pack(void *ctx, rlhf_weight *w, rlhf_dev src) {
    struct recorder *r = ctx;
    OUTSIDE(r, "weight_pack");
    return r->inner->weight_pack(r->inner->ctx, w, src);
}

// ---- recordings ----

static rlhf_status record(void *ctx, uint64_t key, int32_t *what) {
    struct recorder *r = ctx;
    if (r->inside || !key) return broke(r, "record in a recording, or without a key");
    uint32_t i = 0;
    while (i < r->n && r->kept[i].key != key)
        i++;
    if (i == RECORDINGS) return broke(r, "more keys than a caller should need");
    r->open = &r->kept[i];
    r->what = i == r->n            ? RLHF_RECORD_RUN
              : !r->open->captured ? RLHF_RECORD_CAPTURE
                                   : RLHF_RECORD_REPLAY;
    if (i == r->n) r->kept[r->n++] = (struct recording){.key = key};
    r->inside = 1;
    *what = r->what;
    return RLHF_OK;
}

static rlhf_status record_end(void *ctx) {
    struct recorder *r = ctx;
    if (!r->inside) return broke(r, "record_end without record");
    r->inside = 0;
    if (r->what == RLHF_RECORD_RUN) {
        r->runs++;
        return RLHF_OK;
    }
    if (r->what == RLHF_RECORD_CAPTURE) r->captures++;
    if (r->what == RLHF_RECORD_REPLAY) r->replays++;
    r->open->captured = 1;
    for (uint32_t i = 0; i < r->open->n; i++)
        RLHF_TRY(run(r->inner, &r->open->ops[i]));
    return RLHF_OK;
}

void recorder_init(struct recorder *r, const rlhf_compute *inner) {
    memset(r, 0, sizeof *r);
    r->inner = inner;
    r->table = (rlhf_compute){.size = sizeof r->table,
                              .device = inner->device,
                              .dtypes = inner->dtypes,
                              .threads = inner->threads,
                              .flags = inner->flags,
                              .name = inner->name,
                              .detail = inner->detail,
                              .ctx = r,
                              .alloc = alloc,
                              .release = release,
                              .upload = upload,
                              .upload_async = upload,
                              .download = download,
                              .alloc_host = alloc_host,
                              .release_host = release_host,
                              .sync = wait_for_all,
                              .weight_create = weight_create,
                              .weight_create_blocks = weight_create_blocks,
                              .weight_create_quantised = weight_create_quantised,
                              .weight_put = weight_put,
                              .weight_quantised_bytes = inner->weight_quantised_bytes,
                              .embed_weight = embed_weight,
                              .conv = conv,
                              .delta = delta,
                              .gated_norm = gated_norm,
                              .multiply = multiply,
                              .weight_destroy = weight_destroy,
                              .weight_pack = weight_pack,
                              .copy = copy,
                              .zero = zero,
                              .convert = convert,
                              .linear = linear,
                              .linear_add = linear_add,
                              .linear_sum = linear_sum,
                              .embed = embed,
                              .norm = norm,
                              .rms_norm = rms_norm,
                              .act = act,
                              .gate = gate,
                              .rope = rope,
                              .add = add,
                              .gather = gather,
                              .kv_store = kv_store,
                              .attention = attention,
                              .lm_sample = lm_sample,
                              // called when a model is opened, but not while it generates
                              .pool = inner->pool,
                              .lm_head = inner->lm_head,
                              .record = record,
                              .record_end = record_end};
}

void recorder_finish(struct recorder *r) {
    for (uint32_t i = 0; i < r->n; i++)
        free(r->kept[i].ops);
}
