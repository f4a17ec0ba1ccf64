// head.cu: checks the arguments of the language-model head, computes its logits, and decides which
// logits are kept for backward. The kernels are in head_fwd.cu, head_bwd.cu and sample.cu.
#include "head/head.h"

#include <math.h>
#include <string.h>

enum { MAP_THREADS = 256 };

rlhf_status rlhf__head_dist(struct rlhf__cuda *cu, const char *op, rlhf_dist *d,
                            const rlhf_dist *from, int32_t vocab, struct rlhf__dist_rule *rule) {
    if (!from) return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: the distribution is NULL", op);
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, d, sizeof *d, from, RLHF_SIZE_TO(rlhf_dist, top_k)));
    if (!d->greedy && !(d->inv_temperature > 0.0 && isfinite(d->inv_temperature)))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: inv_temperature is %g, must be above 0", op,
                               d->inv_temperature);
    if (!(d->top_p > 0.0 && d->top_p <= 1.0))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: top_p is %g, must be in (0, 1]", op,
                               d->top_p);
    if (!(d->min_p >= 0.0 && d->min_p <= 1.0))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: min_p is %g, must be in [0, 1]", op,
                               d->min_p);
    if (d->top_k < 0)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: top_k is %d, must not be negative", op,
                               d->top_k);
    rule->top_p = d->top_p;
    rule->has_least = d->min_p > 0.0;
    rule->least = rule->has_least ? log(d->min_p) : 0.0;
    rule->it = d->greedy ? 1.0f : (float)d->inv_temperature;
    rule->top_k = d->top_k < vocab ? d->top_k : 0;
    rule->greedy = d->greedy != 0;
    return RLHF_OK;
}

rlhf_status rlhf__head_weight(struct rlhf__cuda *cu, const char *op, const rlhf_weight *w,
                              int32_t d, int32_t vocab, int32_t dtype) {
    if (!w || !w->packed)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: the weight is missing or not packed", op);
    if (w->k != d || w->n != vocab || w->dtype != dtype)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: the weight is %d x %d of dtype %d, the call says %d x %d of "
                               "dtype %d",
                               op, w->k, w->n, w->dtype, d, vocab, dtype);
    return RLHF_OK;
}

static struct rlhf__cuda_product_spec logits_spec(const rlhf_weight *w, uint32_t rows) {
    struct rlhf__cuda_product_spec s = {};
    s.rows = rows;
    s.cols = (uint32_t)w->n_pad;
    s.depth = (uint32_t)w->k;
    s.in_dtype = w->dtype;
    s.out_dtype = RLHF_F32;
    s.left.ld = (uint64_t)w->k;
    s.right = {w->ptr, (uint64_t)w->k_pad, 0};
    s.out_ld = (uint64_t)w->n_pad;
    s.rows_exact = 1;
    return s;
}

rlhf_status rlhf__head_map_read(struct rlhf__cuda *cu, const char *op, struct rlhf__head_map *m,
                                double scale, double cap) {
    if (!(scale >= 0.0 && isfinite(scale)))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: the logit scale is %g, must be above 0", op,
                               scale);
    if (!(cap >= 0.0 && isfinite(cap)))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: the softcap is %g, must not be negative",
                               op, cap);
    m->scale = scale == 0.0 ? 1.0f : (float)scale;
    m->cap = (float)cap;
    return RLHF_OK;
}

static __global__ void __launch_bounds__(MAP_THREADS)
    map_logits(float *z, uint64_t n, struct rlhf__head_map m) {
    const uint64_t i = (uint64_t)blockIdx.x * MAP_THREADS + threadIdx.x;
    if (i >= n) return;
    const float v = z[i] * m.scale;
    z[i] = m.cap > 0.0f ? m.cap * rlhf__tanhf(v / m.cap) : v;
}

rlhf_status rlhf__head_logits(struct rlhf__cuda *cu, float *logits, const void *hidden,
                              const rlhf_weight *w, uint32_t rows, struct rlhf__head_map m) {
    struct rlhf__cuda_product_spec s = logits_spec(w, rows);
    RLHF_TRY(rlhf__cuda_weight_values(cu, w, &s.right.ptr));
    s.left.ptr = hidden;
    s.out = logits;
    RLHF_TRY(rlhf__cuda_product(cu, &s));
    if (m.scale == 1.0f && m.cap == 0.0f) return RLHF_OK;
    const uint64_t n = (uint64_t)rows * (uint64_t)w->n_pad;
    RUN(cu, map_logits, dim3((unsigned)((n + MAP_THREADS - 1) / MAP_THREADS)), dim3(MAP_THREADS), 0,
        logits, n, m);
    return RLHF_OK;
}

uint32_t rlhf__head_fit(uint64_t budget, uint64_t bytes) {
    const uint64_t fit = budget / bytes / 64 * 64;
    return fit < 64 ? 64 : fit < RLHF__HEAD_CHUNK ? (uint32_t)fit : RLHF__HEAD_CHUNK;
}

rlhf_status rlhf__head_read(struct rlhf__cuda *cu, const char *op, struct rlhf__head_call *c,
                            const rlhf_lm_head *from, int backward) {
    rlhf_lm_head *a = &c->a;
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_lm_head, d_weight)));
    RLHF_TRY(rlhf__head_dist(cu, op, &c->dist, a->dist, a->vocab, &c->rule));
    a->dist = &c->dist;
    if (a->divergence != RLHF_DIVERGENCE_REVERSE)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "%s: divergence %d; this backend has only the reverse one, 0", op,
                               a->divergence);
    if (a->ref_d && a->ref_d != a->d)
        return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                               "%s: ref_d is %d; this backend needs a reference as wide as the "
                               "model, %d",
                               op, a->ref_d, a->d);
    RLHF_TRY(rlhf__head_weight(cu, op, a->weight, a->d, a->vocab, a->dtype));
    RLHF_TRY(rlhf__head_map_read(cu, op, &c->map, a->logit_scale, a->softcap));
    RLHF_TRY(rlhf__head_map_read(cu, op, &c->ref_map, a->ref_logit_scale, a->ref_softcap));
    if (backward && a->d_weight) RLHF_TRY(rlhf__cuda_weight_dense(cu, op, a->weight));
    c->with_ref = backward ? a->d_kl != NULL : a->kl != NULL;
    if (c->with_ref) RLHF_TRY(rlhf__head_weight(cu, op, a->ref_weight, a->d, a->vocab, a->dtype));
    if (a->support && rlhf__head_cuts(c->rule))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: top_k, top_p and min_p must be off where rows have a support",
                               op);
    if (backward && a->d_hidden && !(a->weight->flags & RLHF_WEIGHT_BACKWARD))
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: the weight was made without RLHF_WEIGHT_BACKWARD", op);
    c->ld = (uint64_t)a->weight->n_pad;
    return RLHF_OK;
}

const uint32_t *rlhf__head_support(const struct rlhf__head_call *c, uint32_t i) {
    const uint32_t *bits = rlhf__cuda_mem<const uint32_t>(c->a.support);
    return bits ? bits + (uint64_t)i * rlhf_support_words(c->a.vocab) : NULL;
}

// ---- logits kept for the backward call ----

struct rlhf__cuda_kept rlhf__head_kept(const struct rlhf__cuda *cu,
                                       const struct rlhf__head_call *c) {
    const rlhf_lm_head *a = &c->a;
    const uint64_t hidden = (uint64_t)a->rows * (uint64_t)a->d * rlhf_dtype_size(a->dtype);
    const uint64_t bits = (uint64_t)a->rows * rlhf_support_words(a->vocab) * sizeof(uint32_t);
    struct rlhf__cuda_kept k = {};
    k.valid = 1;
    k.with_ref = c->with_ref;
    k.from[0] = {rlhf__cuda_mem<const char>(a->hidden), hidden};
    if (c->with_ref) k.from[1] = {rlhf__cuda_mem<const char>(a->ref_hidden), hidden};
    if (a->support) k.from[2] = {rlhf__cuda_mem<const char>(a->support), bits};
    k.weight = a->weight;
    k.ref_weight = c->with_ref ? a->ref_weight : NULL;
    k.generation = cu->weight_generation;
    k.rows = a->rows;
    k.dist = c->dist;
    k.map[0] = c->map.scale;
    k.map[1] = c->map.cap;
    k.map[2] = c->with_ref ? c->ref_map.scale : 0.0;
    k.map[3] = c->with_ref ? c->ref_map.cap : 0.0;
    return k;
}

static int same_range(const struct rlhf__cuda_range &a, const struct rlhf__cuda_range &b) {
    return a.at == b.at && a.bytes == b.bytes;
}

static int same_dist(const rlhf_dist *a, const rlhf_dist *b) {
    return a->inv_temperature == b->inv_temperature && a->top_p == b->top_p &&
           a->top_k == b->top_k && a->min_p == b->min_p && a->greedy == b->greedy;
}

int rlhf__head_serves(const struct rlhf__cuda_kept *have, const struct rlhf__cuda_kept *want) {
    return have->valid && have->rows == want->rows && have->with_ref >= want->with_ref &&
           have->weight == want->weight && have->generation == want->generation &&
           same_dist(&have->dist, &want->dist) && same_range(have->from[0], want->from[0]) &&
           same_range(have->from[2], want->from[2]) && have->map[0] == want->map[0] &&
           have->map[1] == want->map[1] &&
           (!want->with_ref ||
            (have->ref_weight == want->ref_weight && have->map[2] == want->map[2] &&
             have->map[3] == want->map[3] && same_range(have->from[1], want->from[1])));
}

// ---- workspaces ----

struct rlhf__head_call rlhf__head_shape(const rlhf_lm_head *a, const rlhf_call_weight *w,
                                        int backward) {
    struct rlhf__head_call c = {};
    c.a = *a;
    c.with_ref = backward ? a->d_kl != NULL : a->kl != NULL;
    c.ld = (uint64_t)rlhf__cuda_weight_shape(w).n_pad;
    return c;
}

uint32_t rlhf__head_rows(uint64_t budget, const struct rlhf__head_call *c, int *keep) {
    const uint32_t rows = c->a.rows, chunk = rows < RLHF__HEAD_CHUNK ? rows : RLHF__HEAD_CHUNK;
    const uint64_t row = rlhf__head_row(c);
    const uint64_t grad = c->a.dtype == RLHF_BF16 ? chunk * c->ld * sizeof(rlhf__bf16) : 0;
    const uint32_t fit = rlhf__head_fit(budget, row);
    *keep = rows * row + grad <= budget;
    return *keep ? rows : fit < chunk ? fit : chunk;
}

static uint64_t logits_bytes(const struct rlhf__head_call *c, uint32_t rows) {
    return rows * c->ld * sizeof(float);
}

static uint64_t stat_bytes(uint32_t rows) { return rows * sizeof(struct rlhf__cuda_head_stat); }

void rlhf__head_logits_needs(const struct rlhf__cuda *cu, const rlhf_weight *w, uint32_t rows,
                             struct rlhf__cuda_needs *n) {
    const struct rlhf__cuda_product_spec s = logits_spec(w, rows);
    rlhf__cuda_values_needs(w, n);
    rlhf__cuda_product_needs(cu, &s, n);
}

void rlhf__head_needs(const struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                      const rlhf_weight *w, uint32_t rows, struct rlhf__cuda_needs *n) {
    rlhf__cuda_need(n, RLHF__CUDA_WS_LOGITS, logits_bytes(c, rows));
    rlhf__cuda_need(n, RLHF__CUDA_WS_ROWS, stat_bytes(rows));
    if (c->with_ref) rlhf__cuda_need(n, RLHF__CUDA_WS_REF, logits_bytes(c, rows));
    rlhf__head_logits_needs(cu, w, rows, n);
}

rlhf_status rlhf__head_place(struct rlhf__cuda *cu, const struct rlhf__head_call *c, uint32_t rows,
                             struct rlhf__head_block *b) {
    const uint64_t bytes = logits_bytes(c, rows);
    void *p = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_LOGITS, bytes, &p));
    b->logits = (float *)p;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_ROWS, stat_bytes(rows), &p));
    b->stat = (struct rlhf__cuda_head_stat *)p;
    b->ref = NULL;
    if (!c->with_ref) return RLHF_OK;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_REF, bytes, &p));
    b->ref = (float *)p;
    return RLHF_OK;
}

uint64_t rlhf__head_row(const struct rlhf__head_call *c) {
    return c->ld * sizeof(float) * (c->with_ref ? 2 : 1);
}

void rlhf__head_drop(struct rlhf__cuda *cu, rlhf_status before) {
    cu->recordings.status = before;
    cu->kept.valid = 0;
    rlhf__cuda_workspace_drop(cu, RLHF__CUDA_WS_LOGITS);
    rlhf__cuda_workspace_drop(cu, RLHF__CUDA_WS_REF);
}

rlhf_status rlhf__head_place_fewer(struct rlhf__cuda *cu, const struct rlhf__head_call *c,
                                   uint32_t *rows, struct rlhf__head_block *b) {
    const uint64_t row = rlhf__head_row(c);
    for (;;) {
        const rlhf_status before = cu->recordings.status;
        const rlhf_status st = rlhf__head_place(cu, c, *rows, b);
        if (st != RLHF_E_NOMEM || *rows <= 64) return st;
        rlhf__head_drop(cu, before);
        cu->workspace_bytes = *rows * row / 2;
        *rows = rlhf__head_fit(cu->workspace_bytes, row);
    }
}
