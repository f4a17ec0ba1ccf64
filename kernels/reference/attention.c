// attention.c: multi-head attention over rows of different lengths, with keys and values in place
// or in a cache. Rows may share a prefix.
//
// For query t of row i and head h: s_j = cap(scale q_t . k_j) over the keys that the query sees, p
// = softmax(s), out_t = sum_j p_j v_j, lse_t = log sum_j exp s_j. cap(x) is x or, with a softcap c,
// c tanh(x / c). Adjacent query heads may read the same head of k and v.
#include "number.h"
#include "ops.h"
#include "ragged.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

struct rlhf__ref_span rlhf__ref_ragged_span(const rlhf_ragged *r, uint32_t i) {
    const int32_t *o = rlhf__ref_i32(r->offset);
    struct rlhf__ref_span s;
    s.q0 = (uint64_t)o[i];
    s.nq = (uint64_t)(o[i + 1] - o[i]);
    s.start = (uint64_t)rlhf__ref_i32(r->start)[i];
    s.p0 = r->prefix_base ? rlhf__ref_i32(r->prefix_base)[i] : 0;
    s.np = r->prefix_len ? (uint64_t)rlhf__ref_i32(r->prefix_len)[i] : 0;
    s.k0 = rlhf__ref_i32(r->kv_base)[i];
    s.nk = s.start + s.nq;
    return s;
}

rlhf_status rlhf__ref_ragged_read(struct rlhf__ref *r, const char *op, rlhf_ragged *g,
                                  const rlhf_ragged *from) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, g, sizeof *g, from, RLHF_SIZE_TO(rlhf_ragged, prefix_len)));
    if (!g->prefix_base == !g->prefix_len) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID,
                          "prefix_base and prefix_len must both be NULL or none");
}

rlhf_status rlhf__ref_ragged_check(struct rlhf__ref *r, const rlhf_ragged *g, int32_t window) {
    const int32_t *o = rlhf__ref_i32(g->offset);
    if (o[0] != 0 || o[g->n] < 0 || (uint32_t)o[g->n] != g->total)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "offsets run from %d to %d, total is %u", o[0],
                              o[g->n], g->total);
    for (uint32_t i = 0; i < g->n; i++) {
        const int32_t start = rlhf__ref_i32(g->start)[i], base = rlhf__ref_i32(g->kv_base)[i];
        const int64_t first = window && start >= window ? (int64_t)start + 1 - window : 0;
        const int32_t from = g->prefix_base ? rlhf__ref_i32(g->prefix_base)[i] : 0;
        const int32_t len = g->prefix_len ? rlhf__ref_i32(g->prefix_len)[i] : 0;
        if (o[i + 1] < o[i] || start < 0 || base + (first > len ? first - len : 0) < 0)
            return rlhf__ref_fail(r, RLHF_E_INVALID,
                                  "row %u: tokens %d to %d, start %d, kv_base %d", i, o[i],
                                  o[i + 1], start, base);
        if (len < 0 || (first < len && from + first < 0) || len > start)
            return rlhf__ref_fail(r, RLHF_E_INVALID,
                                  "row %u: prefix of %d tokens at %d, but start is %d", i, len,
                                  from, start);
        const uint64_t nq = (uint64_t)(o[i + 1] - o[i]);
        if (nq > g->max_q || nq + (uint64_t)start > g->max_k)
            return rlhf__ref_fail(r, RLHF_E_INVALID,
                                  "row %u: %llu queries after %d keys, max_q %u, max_k %u", i,
                                  (unsigned long long)nq, start, g->max_q, g->max_k);
    }
    return RLHF_OK;
}

rlhf_status rlhf__ref_attn_read(struct rlhf__ref *r, const char *op, rlhf_attn *a,
                                const rlhf_attn *from) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_attn, scale)));
    RLHF_TRY(rlhf__ref_check_dtype(r, op, a->dtype));
    if (!a->kv_heads) a->kv_heads = a->heads;
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "kv_heads is %d, must divide heads (%d)",
                              a->kv_heads, a->heads);
    const int64_t width = (int64_t)a->heads * a->head_dim;
    const int64_t kv_width = (int64_t)a->kv_heads * a->head_dim;
    if (a->head_dim < 1 || a->q_stride < width || a->kv_stride < kv_width || a->out_stride < width)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "%d heads (%d of keys) of %d do not fit strides q %lld, kv %lld, "
                              "out %lld",
                              a->heads, a->kv_heads, a->head_dim, (long long)a->q_stride,
                              (long long)a->kv_stride, (long long)a->out_stride);
    if (a->window < 0 || (a->window && !a->causal))
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "window is %d with causal %d, must be 0, or positive with causal",
                              a->window, a->causal);
    if (!(a->softcap >= 0.0 && a->softcap <= FLT_MAX))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "softcap is %g, must be 0 or positive and finite",
                              a->softcap);
    return RLHF_OK;
}

struct rlhf__ref_seen rlhf__ref_sees(const rlhf_attn *a, const struct rlhf__ref_span *s,
                                     uint64_t t) {
    if (!a->causal) return (struct rlhf__ref_seen){0, s->nk};
    const uint64_t end = s->start + t + 1, window = (uint64_t)a->window;
    return (struct rlhf__ref_seen){window && end > window ? end - window : 0, end};
}

uint64_t rlhf__ref_attn_bytes(const rlhf_attn *a, int32_t heads, uint64_t tokens, int64_t stride) {
    if (tokens == 0) return 0;
    const uint64_t width = (uint64_t)heads * (uint64_t)a->head_dim;
    return ((tokens - 1) * (uint64_t)stride + width) * rlhf_dtype_size(a->dtype);
}

static rlhf_status kv_store(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k, rlhf_dev v,
                            int64_t kv_src_stride, const rlhf_ragged *rows, int32_t d,
                            int32_t dtype) {
    rlhf_ragged own_rows;
    const rlhf_ragged *r = &own_rows;
    RLHF_TRY(rlhf__ref_check_width(ctx, "kv_store", d));
    RLHF_TRY(rlhf__ref_check_dtype(ctx, "kv_store", dtype));
    RLHF_TRY(rlhf__ref_ragged_read(ctx, "kv_store", &own_rows, rows));
    const uint64_t w = (uint64_t)d, stride = (uint64_t)kv_src_stride;
    const uint64_t src = r->total ? ((r->total - 1) * stride + w) * rlhf_dtype_size(dtype) : 0;
    const struct rlhf__ref_use uses[] = {
        {k_cache, 0}, {v_cache, 0}, {k, src}, {v, src}, RLHF__REF_RAGGED_USES(r)};
    RLHF_TRY(rlhf__ref_enter(ctx, "kv_store", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = rlhf__ref_ragged_check(ctx, r, 1); // only new tokens need locations
    for (uint32_t i = 0; st == RLHF_OK && i < r->n; i++) {
        const struct rlhf__ref_span s = rlhf__ref_ragged_span(r, i);
        const uint64_t first = rlhf__ref_key(&s, s.start);
        const uint64_t end = (first + s.nq) * w * rlhf_dtype_size(dtype);
        if (end > rlhf__ref_extent(ctx, k_cache) || end > rlhf__ref_extent(ctx, v_cache)) {
            st = rlhf__ref_fail(ctx, RLHF_E_INVALID, "row %u ends past the cache", i);
            break;
        }
        for (uint64_t j = 0; j < s.nq * w; j++) {
            const uint64_t to = first * w + j, from = (s.q0 + j / w) * stride + j % w;
            rlhf__ref_put(k_cache, dtype, to, rlhf__ref_get(k, dtype, from));
            rlhf__ref_put(v_cache, dtype, to, rlhf__ref_get(v, dtype, from));
        }
    }
    return rlhf__ref_leave(ctx, st);
}

// Computes the attention of one query over the keys `sees` of its row of the batch. `qa` is the
// index of the query's first element in q. In k and v, the head's part of a token starts `ka`
// elements after the token's start. p[sees.end] is scratch memory.
static double attend(const rlhf_attn *a, double *p, rlhf_dev out, uint64_t oa, rlhf_dev q,
                     uint64_t qa, rlhf_dev k, rlhf_dev v, const struct rlhf__ref_span *s,
                     uint64_t ka, struct rlhf__ref_seen sees) {
    const uint64_t dim = (uint64_t)a->head_dim, stride = (uint64_t)a->kv_stride;
    double max = -INFINITY, sum = 0.0;
    for (uint64_t j = sees.from; j < sees.end; j++) {
        double dot = 0.0;
        for (uint64_t c = 0; c < dim; c++)
            dot += rlhf__ref_get(q, a->dtype, qa + c) *
                   rlhf__ref_get(k, a->dtype, rlhf__ref_key(s, j) * stride + ka + c);
        p[j] = a->scale * dot;
        if (a->softcap > 0.0) p[j] = a->softcap * tanh(p[j] / a->softcap);
        if (p[j] > max) max = p[j];
    }
    for (uint64_t j = sees.from; j < sees.end; j++)
        sum += p[j] = exp(p[j] - max);
    for (uint64_t c = 0; c < dim; c++) {
        double acc = 0.0;
        for (uint64_t j = sees.from; j < sees.end; j++)
            acc += p[j] * rlhf__ref_get(v, a->dtype, rlhf__ref_key(s, j) * stride + ka + c);
        rlhf__ref_put(out, a->dtype, oa + c, acc / sum);
    }
    return max + log(sum);
}

// Computes all queries and heads of one row.
static void attention_row(const rlhf_attn *a, struct rlhf__ref_span s, double *p, rlhf_dev out,
                          rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    const uint64_t heads = (uint64_t)a->heads, dim = (uint64_t)a->head_dim;
    const uint64_t group = heads / (uint64_t)a->kv_heads;
    for (uint64_t t = s.q0; t < s.q0 + s.nq; t++) {
        const struct rlhf__ref_seen sees = rlhf__ref_sees(a, &s, t - s.q0);
        for (uint64_t h = 0; h < heads; h++) {
            const double l =
                attend(a, p, out, t * (uint64_t)a->out_stride + h * dim, q,
                       t * (uint64_t)a->q_stride + h * dim, k, v, &s, h / group * dim, sees);
            if (lse) rlhf__ref_f32(lse)[t * heads + h] = (float)l;
        }
    }
}

static rlhf_status attention(void *ctx, const rlhf_attn *attn, const rlhf_ragged *rows,
                             rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    rlhf_attn own_attn;
    rlhf_ragged own_rows;
    const rlhf_attn *a = &own_attn;
    const rlhf_ragged *r = &own_rows;
    RLHF_TRY(rlhf__ref_attn_read(ctx, "attention", &own_attn, attn));
    RLHF_TRY(rlhf__ref_ragged_read(ctx, "attention", &own_rows, rows));
    const struct rlhf__ref_use uses[] = {
        {out, rlhf__ref_attn_bytes(a, a->heads, r->total, a->out_stride)},
        rlhf__ref_optional(lse, r->total, (uint64_t)a->heads * sizeof(float)),
        {q, rlhf__ref_attn_bytes(a, a->heads, r->total, a->q_stride)},
        {k, 0},
        {v, 0},
        RLHF__REF_RAGGED_USES(r)};
    double *p;
    RLHF_TRY(rlhf__ref_scratch(ctx, r->max_k, sizeof *p, &p));
    rlhf_status st = rlhf__ref_enter(ctx, "attention", uses, RLHF__REF_COUNT(uses));
    if (st == RLHF_OK) st = rlhf__ref_ragged_check(ctx, r, a->window);
    for (uint32_t i = 0; st == RLHF_OK && i < r->n; i++) {
        const struct rlhf__ref_span s = rlhf__ref_ragged_span(r, i);
        const uint64_t first = rlhf__ref_sees(a, &s, 0).from;
        const uint64_t own =
            rlhf__ref_attn_bytes(a, a->kv_heads, rlhf__ref_key(&s, s.nk), a->kv_stride);
        const uint64_t prefix =
            first < s.np ? rlhf__ref_attn_bytes(a, a->kv_heads, (uint64_t)s.p0 + s.np, a->kv_stride)
                         : 0;
        const uint64_t end = own > prefix ? own : prefix;
        if (s.nq && (end > rlhf__ref_extent(ctx, k) || end > rlhf__ref_extent(ctx, v)))
            st = rlhf__ref_fail(ctx, RLHF_E_INVALID, "keys of row %u end past k or v", i);
        else
            attention_row(a, s, p, out, lse, q, k, v);
    }
    free(p);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_attention(rlhf_compute *t) {
    t->kv_store = kv_store;
    t->attention = attention;
}
