// memory_plan.c: see memory_plan.h.
#include "estimate/memory_plan.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// The functions must match the table's types, but most use few of their parameters.
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct rlhf__memory_plan {
    rlhf_compute table;
    const rlhf_compute *real;
    struct rlhf__allocations allocations;
    uint64_t workspace[2][RLHF_WORKSPACES]; // bytes so far of each workspace of both tables
    const rlhf_compute *second; // the second table, if calls are for it; NULL: they are for `real`
    int32_t bf16_weights;       // 1: a bf16 weight was created, see rlhf_call.dtype
    struct {
        int32_t k, n;
    } largest[RLHF_FORMAT_Q5_1 + 1]; // part of a quantised weight, by format
    struct rlhf__speed speed;        // all 0: calls take no time
    double seconds, sampled, step;   // of all calls; at the last lm_sample; since the one before
};

// A weight of the plan.
struct planned_weight {
    rlhf_call_weight shape;
    rlhf_quantised quantised; // what shape.quantised points to
    rlhf_dev at;
    int32_t parts[]; // of a quantised weight: the formats, then the counts
};

// ---- memory ----

static rlhf_status p_alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    struct rlhf__memory_plan *p = ctx;
    return rlhf__allocations_add(&p->allocations, bytes, p->allocations.use, out);
}
static void p_release(void *ctx, rlhf_dev dev) {
    rlhf__allocations_remove(&((struct rlhf__memory_plan *)ctx)->allocations, dev);
}
static uint64_t p_bytes_in_use(void *ctx) {
    return ((struct rlhf__memory_plan *)ctx)->allocations.now;
}
// Host memory is really allocated, because models write to it.
static rlhf_status p_alloc_host(void *ctx, uint64_t bytes, void **out) {
    *out = bytes > RLHF__ALLOCATIONS_MOST ? NULL : aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!*out)
        return rlhf__allocations_refuse(&((struct rlhf__memory_plan *)ctx)->allocations, bytes);
    memset(*out, 0, bytes);
    return RLHF_OK;
}
static void p_release_host(void *ctx, void *at) { free(at); }

static rlhf_status p_download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    if (bytes) memset(host_dst, 0, bytes);
    return RLHF_OK;
}
#define p_download_async p_download

static rlhf_status p_mark(void *ctx, uint64_t *ticket) {
    *ticket = 1;
    return RLHF_OK;
}
static rlhf_status p_record(void *ctx, uint64_t key, int32_t *what) {
    *what = RLHF_RECORD_RUN;
    return RLHF_OK;
}
static rlhf_status p_record_end(void *ctx) { return RLHF_OK; }
static rlhf_status p_sync(void *ctx) { return RLHF_OK; }

#define IDLE(name, ...)                                                                            \
    static rlhf_status p_##name(void *ctx, __VA_ARGS__) { return RLHF_OK; }

IDLE(upload, rlhf_dev dst, const void *src, uint64_t bytes)
IDLE(upload_async, rlhf_dev dst, const void *src, uint64_t bytes)
IDLE(copy, rlhf_dev dst, rlhf_dev src, uint64_t bytes)
IDLE(zero, rlhf_dev dst, uint64_t bytes)
IDLE(wait, uint64_t ticket)

// ---- workspaces and time ----

// Counts the time of a call and the workspaces that it needs. They belong to the backend, not to
// the model that calls.
static rlhf_status count(struct rlhf__memory_plan *p, const rlhf_call *call) {
    const rlhf_compute *r = p->second ? p->second : p->real;
    uint64_t bytes[RLHF_WORKSPACES] = {0}, *most = p->workspace[p->second != NULL];
    if (p->speed.product > 0) p->seconds += rlhf__speed_seconds(&p->speed, call);
    if (!RLHF_COMPUTE_HAS(r, workspace_bytes)) return RLHF_OK;
    r->workspace_bytes(r->ctx, call, bytes);
    for (int i = 0; i < RLHF_WORKSPACES; i++) {
        if (bytes[i] > RLHF__ALLOCATIONS_MOST)
            return rlhf__allocations_refuse(&p->allocations, bytes[i]);
        if (bytes[i] <= most[i]) continue;
        rlhf__allocations_grow(&p->allocations, rlhf__uses_owner(&p->allocations.uses, r->name),
                               RLHF__USE_WORKSPACE, bytes[i] - most[i]);
        most[i] = bytes[i];
    }
    return RLHF_OK;
}

static void p_workspace_bytes(void *ctx, const rlhf_call *call, uint64_t *bytes) {
    const struct rlhf__memory_plan *p = ctx;
    p->real->workspace_bytes(p->real->ctx, call, bytes);
}

static rlhf_status p_supports(void *ctx, const rlhf_call *call) {
    const struct rlhf__memory_plan *p = ctx;
    const rlhf_compute *r = p->second ? p->second : p->real;
    return RLHF_COMPUTE_HAS(r, supports) ? r->supports(r->ctx, call) : RLHF_OK;
}

// Fields of an rlhf_call that follow from the shapes of an op's arguments.
#define SHAPE(...) __VA_ARGS__
#define CALL(f, ...)                                                                               \
    (&(rlhf_call){.size = sizeof(rlhf_call), .op = RLHF_COMPUTE_OP(f), __VA_ARGS__})

// Defines an op whose workspaces are counted from the shapes of its arguments.
#define COUNTED(name, shape, ...)                                                                  \
    static rlhf_status p_##name(void *ctx, __VA_ARGS__) { return count(ctx, CALL(name, shape)); }

#define GRAD(wanted) ((wanted) ? (uint32_t)RLHF_CALL_PARAM_GRAD : 0)

COUNTED(convert, SHAPE(.n = n, .dtype = to), rlhf_dev dst, int32_t to, rlhf_dev src, int32_t from,
        uint64_t n)
COUNTED(embed, SHAPE(.rows = rows, .d = d), rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte,
        rlhf_dev wpe, double scale, uint32_t rows, int32_t d)
COUNTED(embed_bwd, SHAPE(.rows = rows, .d = d), rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout,
        rlhf_dev ids, rlhf_dev pos, double scale, uint32_t rows, int32_t d, int32_t vocab,
        int32_t n_pos)
COUNTED(norm, SHAPE(.rows = rows, .d = d, .dtype = dtype), rlhf_dev out, int32_t dtype,
        rlhf_dev stats, rlhf_dev x, rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows,
        int32_t d)
COUNTED(norm_bwd, SHAPE(.rows = rows, .d = d, .dtype = dtype, .flags = GRAD(dgamma || dbeta)),
        rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma, rlhf_dev dbeta, rlhf_dev dy,
        int32_t dtype, rlhf_dev x, rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d)
COUNTED(rms_norm, SHAPE(.rows = rows, .d = d, .dtype = dtype), rlhf_dev out, int32_t dtype,
        rlhf_dev stats, rlhf_dev x, rlhf_dev gamma, double offset, double eps, uint32_t rows,
        int32_t d)
COUNTED(rms_norm_bwd, SHAPE(.rows = rows, .d = d, .dtype = dtype, .flags = GRAD(dgamma)),
        rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma, rlhf_dev dy, int32_t dtype, rlhf_dev x,
        rlhf_dev stats, rlhf_dev gamma, double offset, uint32_t rows, int32_t d)
COUNTED(act, SHAPE(.n = n, .dtype = dtype), rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
        uint64_t n)
COUNTED(act_bwd, SHAPE(.n = n, .dtype = dtype), rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
        int32_t dtype, uint64_t n)
COUNTED(gate, SHAPE(.rows = rows, .d = inner, .dtype = dtype), rlhf_dev out, rlhf_dev x,
        int32_t kind, int32_t dtype, uint32_t rows, int32_t inner)
COUNTED(gate_bwd, SHAPE(.rows = rows, .d = inner, .dtype = dtype), rlhf_dev dx, rlhf_dev dy,
        rlhf_dev x, int32_t kind, int32_t dtype, uint32_t rows, int32_t inner)
COUNTED(add, SHAPE(.n = n, .dtype = dtype), rlhf_dev dst, rlhf_dev src, int32_t dtype, uint64_t n)
COUNTED(gather, SHAPE(.rows = n, .d = d, .dtype = dtype), rlhf_dev out, rlhf_dev x, rlhf_dev idx,
        uint32_t n, int32_t d, int32_t dtype)
COUNTED(scatter_add, SHAPE(.rows = n, .d = d, .dtype = dtype), rlhf_dev dx, rlhf_dev dy,
        int32_t dtype, rlhf_dev idx, uint32_t n, int32_t d)
COUNTED(pool, SHAPE(.rows = n, .d = d), rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n,
        int32_t d, int32_t mode)
COUNTED(pool_bwd, SHAPE(.rows = n, .d = d), rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
        int32_t d, int32_t mode)
COUNTED(rope, SHAPE(.rows = rows, .rope = r), const rlhf_rope *r, rlhf_dev x, uint32_t rows)
COUNTED(rope_bwd, SHAPE(.rows = rows, .rope = r, .flags = GRAD(dgamma_q || dgamma_k)),
        const rlhf_rope *r, rlhf_dev dx, rlhf_dev dgamma_q, rlhf_dev dgamma_k, uint32_t rows)
COUNTED(kv_store, SHAPE(.rows = r->total, .d = d, .dtype = dtype, .ragged = r), rlhf_dev kc,
        rlhf_dev vc, rlhf_dev k, rlhf_dev v, int64_t stride, const rlhf_ragged *r, int32_t d,
        int32_t dtype)
COUNTED(attention, SHAPE(.rows = r->total, .attn = a, .ragged = r), const rlhf_attn *a,
        const rlhf_ragged *r, rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v)
COUNTED(attention_bwd, SHAPE(.rows = r->total, .attn = a, .ragged = r), const rlhf_attn *a,
        const rlhf_ragged *r, rlhf_dev dq, rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
        rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v)
COUNTED(conv, SHAPE(.rows = r->total, .conv = a, .ragged = r), const rlhf_conv *a,
        const rlhf_ragged *r, const rlhf_states *states, rlhf_dev y, rlhf_dev x)
COUNTED(conv_bwd, SHAPE(.rows = r->total, .conv = a, .ragged = r, .flags = GRAD(dweight || dbias)),
        const rlhf_conv *a, const rlhf_ragged *r, rlhf_dev dx, rlhf_dev dweight, rlhf_dev dbias,
        rlhf_dev dy, rlhf_dev x)
COUNTED(delta, SHAPE(.rows = r->total, .delta = a, .ragged = r), const rlhf_delta *a,
        const rlhf_ragged *r, const rlhf_states *states, rlhf_dev out, rlhf_dev x, rlhf_dev beta,
        rlhf_dev alpha)
COUNTED(delta_bwd,
        SHAPE(.rows = r->total, .delta = a, .ragged = r, .flags = GRAD(da_log || ddt_bias)),
        const rlhf_delta *a, const rlhf_ragged *r, rlhf_dev dx, rlhf_dev dbeta, rlhf_dev dalpha,
        rlhf_dev da_log, rlhf_dev ddt_bias, rlhf_dev dout, rlhf_dev x, rlhf_dev beta,
        rlhf_dev alpha)
COUNTED(gated_norm, SHAPE(.rows = rows, .gated_norm = a), const rlhf_gated_norm *a, rlhf_dev out,
        rlhf_dev stats, rlhf_dev x, rlhf_dev gate, uint32_t rows)
COUNTED(gated_norm_bwd, SHAPE(.rows = rows, .gated_norm = a, .flags = GRAD(dgamma)),
        const rlhf_gated_norm *a, rlhf_dev dx, rlhf_dev dgate, rlhf_dev dgamma, rlhf_dev dout,
        rlhf_dev stats, rlhf_dev x, rlhf_dev gate, uint32_t rows)
COUNTED(multiply, SHAPE(.rows = rows, .columns = a), const rlhf_columns *a, rlhf_dev out,
        rlhf_dev x, rlhf_dev gate, uint32_t rows)
COUNTED(multiply_bwd, SHAPE(.rows = rows, .columns = a), const rlhf_columns *a, rlhf_dev dx,
        rlhf_dev dgate, rlhf_dev dout, rlhf_dev x, rlhf_dev gate, uint32_t rows)
COUNTED(add_all, SHAPE(.n = n), rlhf_dev x, const rlhf_dev *src, uint32_t n_src, rlhf_dev to,
        uint64_t n)
COUNTED(adamw, SHAPE(.n = n), rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
        const rlhf_adamw *a)
COUNTED(sumsq_many, SHAPE(.tensors = t), const rlhf_tensors *t, double max_norm, int32_t skip,
        rlhf_dev clip)
COUNTED(adamw_many, SHAPE(.tensors = t), const rlhf_tensors *t, const rlhf_adamw *a, rlhf_dev clip)

static rlhf_status p_sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
    *host_out = 0;
    return count(ctx, CALL(sumsq, .n = n));
}

static rlhf_status p_muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows,
                          int32_t cols, const rlhf_muon *a) {
    const int32_t bf16 = ((const struct rlhf__memory_plan *)ctx)->bf16_weights;
    return count(ctx, CALL(muon, .rows = (uint32_t)rows, .d = cols,
                           .dtype = bf16 ? RLHF_BF16 : RLHF_F32, .muon = a));
}

// ---- weights ----

static rlhf_call_weight shape_of(const rlhf_weight *w) {
    return w ? ((const struct planned_weight *)(const void *)w)->shape : (rlhf_call_weight){0};
}

static uint64_t p_weight_bytes(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags) {
    const rlhf_compute *r = ((const struct rlhf__memory_plan *)ctx)->real;
    return r->weight_bytes(r->ctx, k, n, dtype, flags);
}

static uint64_t p_weight_quantised_bytes(void *ctx, const rlhf_quantised *a) {
    const rlhf_compute *r = ((const struct rlhf__memory_plan *)ctx)->real;
    return r->weight_quantised_bytes(r->ctx, a);
}

static uint64_t packed_bytes(struct rlhf__memory_plan *p, const rlhf_call_weight *w) {
    if (w->quantised) return p_weight_quantised_bytes(p, w->quantised);
    if (RLHF_COMPUTE_HAS(p->real, weight_bytes))
        return p_weight_bytes(p, w->k, w->n, w->dtype, w->flags);
    const uint64_t one = (uint64_t)w->k * (uint64_t)w->n * rlhf_dtype_size(w->dtype);
    return w->flags & RLHF_WEIGHT_BACKWARD ? 2 * one : one;
}

static rlhf_status new_weight(struct rlhf__memory_plan *p, const rlhf_call_weight *shape,
                              rlhf_weight **out) {
    struct rlhf__allocations *a = &p->allocations;
    const size_t parts = shape->quantised ? shape->quantised->n_parts : 0;
    struct planned_weight *w = calloc(1, sizeof *w + 2 * parts * sizeof *w->parts);
    *out = NULL;
    if (!w) return rlhf__allocations_refuse(a, sizeof *w);
    w->shape = *shape;
    w->shape.quantised = NULL;
    if (parts) {
        w->quantised = *shape->quantised;
        w->quantised.format = w->parts;
        w->quantised.count = w->parts + parts;
        memcpy(w->parts, shape->quantised->format, parts * sizeof *w->parts);
        memcpy(w->parts + parts, shape->quantised->count, parts * sizeof *w->parts);
        w->shape.quantised = &w->quantised;
    }
    const uint32_t owner = a->owner;
    a->owner = a->packer;
    const rlhf_status st =
        rlhf__allocations_add(a, packed_bytes(p, shape), RLHF__USE_PACKED, &w->at);
    a->owner = owner;
    if (st != RLHF_OK) {
        free(w);
        return st;
    }
    if (shape->dtype == RLHF_BF16) p->bf16_weights = 1;
    *out = (rlhf_weight *)(void *)w;
    return RLHF_OK;
}

static rlhf_status p_weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                   rlhf_weight **out) {
    const rlhf_call_weight w = {.k = k, .n = n, .dtype = dtype, .flags = flags};
    return new_weight(ctx, &w, out);
}

static rlhf_status p_weight_create_blocks(void *ctx, const rlhf_blocks *from, rlhf_weight **out) {
    rlhf_blocks a;
    RLHF_TRY(rlhf_copy_in(&a, sizeof a, from, RLHF_SIZE_TO(rlhf_blocks, scale)));
    const rlhf_call_weight w = {.k = (int32_t)a.n_blocks * a.rank,
                                .n = a.n,
                                .dtype = a.dtype,
                                .flags = a.flags | RLHF_WEIGHT_OUT_IN,
                                .rank = a.rank};
    return new_weight(ctx, &w, out);
}

static void note_formats(struct rlhf__memory_plan *p, const rlhf_quantised *a) {
    for (uint32_t i = 0; i < a->n_parts; i++) {
        const int32_t format = a->format[i], n = a->count[i];
        if (format < 0 || format > RLHF_FORMAT_Q5_1 ||
            (int64_t)n * a->k <= (int64_t)p->largest[format].n * p->largest[format].k)
            continue;
        p->largest[format].k = a->k;
        p->largest[format].n = n;
    }
}

static rlhf_status p_weight_create_quantised(void *ctx, const rlhf_quantised *from,
                                             rlhf_weight **out) {
    rlhf_quantised a;
    RLHF_TRY(rlhf_copy_in(&a, sizeof a, from, RLHF_SIZE_TO(rlhf_quantised, count)));
    note_formats(ctx, &a);
    const rlhf_call_weight w = {.k = a.k,
                                .n = a.n,
                                .dtype = a.dtype,
                                .flags = a.flags | RLHF_WEIGHT_OUT_IN,
                                .quantised = &a};
    return new_weight(ctx, &w, out);
}

static void p_weight_destroy(void *ctx, rlhf_weight *weight) {
    struct planned_weight *w = (struct planned_weight *)(void *)weight;
    if (!w) return;
    rlhf__allocations_remove(&((struct rlhf__memory_plan *)ctx)->allocations, w->at);
    free(w);
}

// ---- matrix products, and the language-model head ----

static uint32_t flags_of(int accumulate, int bias) {
    return (accumulate ? (uint32_t)RLHF_CALL_ACCUMULATE : 0) |
           (bias ? (uint32_t)RLHF_CALL_BIAS : 0);
}

COUNTED(weight_pack, SHAPE(.weight = shape_of(w)), rlhf_weight *w, rlhf_dev src_f32)
COUNTED(weight_put, SHAPE(.rows = (uint32_t)rows, .weight = shape_of(w)), rlhf_weight *w,
        int32_t from, int32_t rows, const void *host_blocks)
COUNTED(embed_weight, SHAPE(.rows = rows, .d = w ? shape_of(w).k : 0, .weight = shape_of(w)),
        rlhf_dev out, rlhf_dev ids, const rlhf_weight *w, double scale, uint32_t rows)
COUNTED(linear,
        SHAPE(.rows = rows, .dtype = dtype, .weight = shape_of(w),
              .flags = flags_of(accumulate, bias != NULL)),
        rlhf_dev out, int32_t dtype, int32_t accumulate, rlhf_dev x, const rlhf_weight *w,
        rlhf_dev bias, uint32_t rows)
COUNTED(linear_add,
        SHAPE(.rows = rows, .dtype = RLHF_F32, .weight = shape_of(w),
              .flags = flags_of(0, bias != NULL)),
        rlhf_dev out, rlhf_dev add, rlhf_dev x, const rlhf_weight *w, rlhf_dev bias, uint32_t rows)
COUNTED(linear_dx,
        SHAPE(.rows = rows, .dtype = dtype, .weight = shape_of(w),
              .flags = flags_of(accumulate, 0)),
        rlhf_dev dx, int32_t dtype, int32_t accumulate, rlhf_dev dy, const rlhf_weight *w,
        uint32_t rows)
COUNTED(linear_dw,
        SHAPE(.rows = rows, .dtype = RLHF_F32, .weight = shape_of(w),
              .flags = flags_of(1, db != NULL)),
        rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy, const rlhf_weight *w, uint32_t rows)
COUNTED(linear_sum,
        SHAPE(.rows = a->rows, .dtype = a->out_dtype, .weight = shape_of(a->w),
              .weight2 = shape_of(a->w2), .sum = a),
        const rlhf_linear_sum *a)
COUNTED(lm_head,
        SHAPE(.rows = a->rows, .d = a->d, .dtype = a->dtype, .weight = shape_of(a->weight),
              .weight2 = shape_of(a->ref_weight), .head = a),
        const rlhf_lm_head *a)
COUNTED(lm_head_bwd,
        SHAPE(.rows = a->rows, .d = a->d, .dtype = a->dtype, .weight = shape_of(a->weight),
              .weight2 = shape_of(a->ref_weight), .head = a),
        const rlhf_lm_head *a)

// A call of lm_sample ends a decoding step.
static void end_step(struct rlhf__memory_plan *p) {
    p->step = p->seconds - p->sampled;
    p->sampled = p->seconds;
}

static rlhf_status p_lm_sample(void *ctx, const rlhf_lm_sample *a) {
    RLHF_TRY(count(ctx, CALL(lm_sample, .rows = a->rows, .d = a->d, .dtype = a->dtype,
                             .weight = shape_of(a->weight), .sample = a)));
    end_step(ctx);
    if (a->id) return RLHF_OK;
    if (a->host_id) memset(a->host_id, 0, a->rows * sizeof *a->host_id);
    if (a->host_logp) memset(a->host_logp, 0, a->rows * sizeof *a->host_logp);
    if (a->host_support)
        memset(a->host_support, 0,
               a->rows * (size_t)rlhf_support_words(a->vocab) * sizeof *a->host_support);
    return RLHF_OK;
}

// ---- life ----

// clang-format off
#define OPS(X)                                                                                     \
    X(alloc) X(release) X(bytes_in_use) X(upload) X(download) X(copy) X(zero)        \
    X(convert) X(sync) X(embed) X(embed_bwd) X(norm) X(act) X(act_bwd) X(add) X(gather)            \
    X(scatter_add) X(pool) X(pool_bwd) X(kv_store) X(sumsq) X(adamw) X(alloc_host)                 \
    X(release_host) X(upload_async) X(download_async) X(mark) X(wait) X(sumsq_many) X(adamw_many)  \
    X(record) X(record_end) X(rms_norm) X(rms_norm_bwd) X(gate) X(gate_bwd) X(rope) X(rope_bwd)    \
    X(weight_create) X(weight_destroy) X(weight_pack) X(weight_bytes) X(weight_create_blocks)      \
    X(linear) X(linear_add) X(linear_dx) X(linear_dw) X(linear_sum) X(lm_head) X(lm_head_bwd)      \
    X(lm_sample) X(muon) X(attention) X(attention_bwd) X(norm_bwd) X(workspace_bytes) X(add_all) \
    X(supports) X(weight_create_quantised) X(weight_put) X(weight_quantised_bytes) X(embed_weight) \
    X(conv) X(conv_bwd) X(delta) X(delta_bwd) X(gated_norm) X(gated_norm_bwd) X(multiply)          \
    X(multiply_bwd)
// clang-format on

// Set the plan's op if the real backend has it.
#define PUT(f)                                                                                     \
    if (RLHF_COMPUTE_HAS(real, f)) t->f = p_##f;

// `native` is not an op, and the plan leaves it out, because the plan has no real addresses.
_Static_assert(sizeof(rlhf_compute) ==
                   offsetof(rlhf_compute, multiply_bwd) + sizeof(((rlhf_compute *)0)->multiply_bwd),
               "an op that is new in the table needs its line here");

rlhf_status rlhf__memory_plan_open(const rlhf_compute *real, struct rlhf__memory_plan **out,
                                   struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__memory_plan *p = calloc(1, sizeof *p);
    if (!p) return RLHF__NOMEM(err, "out of memory for a memory plan");
    rlhf_compute *t = &p->table;
    p->real = real;
    *t = (rlhf_compute){.size = sizeof *t,
                        .device = real->device,
                        .dtypes = real->dtypes,
                        .threads = real->threads,
                        .flags = real->flags,
                        .name = real->name,
                        .detail = real->detail,
                        .ctx = p,
                        .slots_hint = real->slots_hint,
                        .microbatch_hint = real->microbatch_hint};
    OPS(PUT)
    rlhf__memory_plan_account(p, "models", RLHF__USE_ACTIVATIONS);
    *out = p;
    return RLHF_OK;
}

void rlhf__memory_plan_close(struct rlhf__memory_plan *p) {
    if (!p) return;
    rlhf__allocations_finish(&p->allocations);
    free(p);
}

const rlhf_compute *rlhf__memory_plan_table(const struct rlhf__memory_plan *p) { return &p->table; }

void rlhf__memory_plan_account(struct rlhf__memory_plan *p, const char *owner, int32_t use) {
    struct rlhf__allocations *a = &p->allocations;
    a->owner = a->packer = rlhf__uses_owner(&a->uses, owner);
    a->use = use;
}

void rlhf__memory_plan_packs(struct rlhf__memory_plan *p, const char *owner) {
    p->allocations.packer = rlhf__uses_owner(&p->allocations.uses, owner);
}

void rlhf__memory_plan_second(struct rlhf__memory_plan *p, const rlhf_compute *second) {
    p->second = second;
}

void rlhf__memory_plan_set_use(struct rlhf__memory_plan *p, rlhf_dev dev, int32_t use) {
    rlhf__allocations_set_use(&p->allocations, dev, use);
}

void rlhf__memory_plan_time(struct rlhf__memory_plan *p, const struct rlhf__speed *speed) {
    p->speed = *speed;
}
int rlhf__memory_plan_quantised(const struct rlhf__memory_plan *p, int32_t format, int32_t *k,
                                int32_t *n) {
    *k = p->largest[format].k;
    *n = p->largest[format].n;
    return *k > 0;
}
double rlhf__memory_plan_seconds(const struct rlhf__memory_plan *p) { return p->seconds; }
double rlhf__memory_plan_step_seconds(const struct rlhf__memory_plan *p) { return p->step; }

const struct rlhf__uses *rlhf__memory_plan_uses(const struct rlhf__memory_plan *p) {
    return &p->allocations.uses;
}
const struct rlhf__uses *rlhf__memory_plan_peak(const struct rlhf__memory_plan *p) {
    return &p->allocations.at_peak;
}
