// attention_bwd.c: the derivative of attention in the training layout.
//
// With x_tj = scale q_t . k_j, p_tj = exp(cap(x_tj) - lse_t) and g_tj = dout_t . v_j:
//   ds_tj = p_tj (g_tj - sum_j p_tj g_tj) cap'(x_tj), dq_t = scale sum_j ds_tj k_j,
//   dk_j = scale sum_t ds_tj q_t, dv_j = sum_t p_tj dout_t.
// cap is that of attention.c; its derivative is 1 - tanh^2(x / c), or 1 without a softcap.
// The sum over p g equals out . dout and is computed from the stored `out`, as in the other
// backends. In bf16 `out` has been rounded, so the two differ slightly.
#include "number.h"
#include "ops.h"
#include "ragged.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bwd {
    const rlhf_attn *a;
    rlhf_dev dq, dk, dv, dout, out, lse, q, k, v;
    double *dk_sum, *dv_sum; // [max_k, head_dim] of the current row and key head, prefix first
    double *p, *ds, *slope;  // [max_k] of the current query; slope: cap'
};

static double dot(const rlhf_attn *a, rlhf_dev x, uint64_t xa, rlhf_dev y, uint64_t ya) {
    double sum = 0.0;
    for (uint64_t c = 0; c < (uint64_t)a->head_dim; c++)
        sum += rlhf__ref_get(x, a->dtype, xa + c) * rlhf__ref_get(y, a->dtype, ya + c);
    return sum;
}

// Processes one query of one head: writes its dq, and adds to dk_sum and dv_sum.
static void query_bwd(const struct bwd *b, const struct rlhf__ref_span *s, uint64_t t, uint64_t h,
                      struct rlhf__ref_seen sees) {
    const rlhf_attn *a = b->a;
    const uint64_t dim = (uint64_t)a->head_dim, kvs = (uint64_t)a->kv_stride;
    const uint64_t qa = t * (uint64_t)a->q_stride + h * dim;
    const uint64_t group = (uint64_t)(a->heads / a->kv_heads);
    const uint64_t oa = t * (uint64_t)a->out_stride + h * dim, ka = h / group * dim;
    const double lse = (double)rlhf__ref_f32(b->lse)[t * (uint64_t)a->heads + h];
    const double mean = dot(a, b->dout, oa, b->out, oa);
    for (uint64_t j = sees.from; j < sees.end; j++) {
        double x = a->scale * dot(a, b->q, qa, b->k, ka + rlhf__ref_key(s, j) * kvs);
        const double bent = a->softcap > 0.0 ? tanh(x / a->softcap) : 0.0;
        if (a->softcap > 0.0) x = a->softcap * bent;
        b->slope[j] = 1.0 - bent * bent;
        b->p[j] = exp(x - lse);
        b->ds[j] = dot(a, b->dout, oa, b->v, ka + rlhf__ref_key(s, j) * kvs);
    }
    for (uint64_t j = sees.from; j < sees.end; j++)
        b->ds[j] = b->p[j] * (b->ds[j] - mean) * b->slope[j];
    for (uint64_t c = 0; c < dim; c++) {
        double acc = 0.0;
        for (uint64_t j = sees.from; j < sees.end; j++) {
            acc += b->ds[j] * rlhf__ref_get(b->k, a->dtype, ka + rlhf__ref_key(s, j) * kvs + c);
            b->dk_sum[j * dim + c] += a->scale * b->ds[j] * rlhf__ref_get(b->q, a->dtype, qa + c);
            b->dv_sum[j * dim + c] += b->p[j] * rlhf__ref_get(b->dout, a->dtype, oa + c);
        }
        rlhf__ref_put(b->dq, a->dtype, qa + c, a->scale * acc);
    }
}

// Stores the sums of keys j0 .. j1-1 of the row, for key head h.
static void put_sums(const struct bwd *b, const struct rlhf__ref_span *s, uint64_t h, uint64_t j0,
                     uint64_t j1) {
    const uint64_t dim = (uint64_t)b->a->head_dim, kvs = (uint64_t)b->a->kv_stride;
    for (uint64_t j = j0 * dim; j < j1 * dim; j++) {
        const uint64_t at = rlhf__ref_key(s, j / dim) * kvs + h * dim + j % dim;
        rlhf__ref_put(b->dk, b->a->dtype, at, b->dk_sum[j]);
        rlhf__ref_put(b->dv, b->a->dtype, at, b->dv_sum[j]);
    }
}

// Processes rows i0 .. i1-1. Row i0 is the prefix that the other rows share, so its keys are the
// first keys of every row. For these keys, the sums of dk and dv accumulate over all rows and are
// stored at the end.
static void family_bwd(const struct bwd *b, const rlhf_ragged *g, uint32_t i0, uint32_t i1) {
    const uint64_t dim = (uint64_t)b->a->head_dim;
    const uint64_t group = (uint64_t)(b->a->heads / b->a->kv_heads);
    const struct rlhf__ref_span first = rlhf__ref_ragged_span(g, i0);
    for (uint64_t h = 0; h < (uint64_t)b->a->kv_heads; h++) {
        for (uint32_t i = i0; i < i1; i++) {
            const struct rlhf__ref_span s = rlhf__ref_ragged_span(g, i);
            memset(b->dk_sum + s.np * dim, 0, (s.nk - s.np) * dim * sizeof(double));
            memset(b->dv_sum + s.np * dim, 0, (s.nk - s.np) * dim * sizeof(double));
            for (uint64_t q = h * group; q < (h + 1) * group; q++)
                for (uint64_t t = 0; t < s.nq; t++)
                    query_bwd(b, &s, s.q0 + t, q, rlhf__ref_sees(b->a, &s, t));
            if (i > i0) put_sums(b, &s, h, s.np, s.nk);
        }
        put_sums(b, &first, h, 0, first.nk);
    }
}

// Checks the layout of the backward pass, which does not use a cache. The keys of a row must be
// those of its prefix, followed by its own tokens. The prefix must be a complete earlier row,
// directly followed by the rows that share it.
static rlhf_status check_training_layout(struct rlhf__ref *r, const rlhf_ragged *g) {
    RLHF_TRY(rlhf__ref_ragged_check(r, g, 0));
    struct rlhf__ref_span head = {0};
    for (uint32_t i = 0; i < g->n; i++) {
        const struct rlhf__ref_span s = rlhf__ref_ragged_span(g, i);
        if (s.start != s.np || (uint64_t)s.k0 != s.q0)
            return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED,
                                  "row %u: start %llu, kv_base %llu, offset %llu; backward needs "
                                  "the length of the prefix (%llu) and kv_base = offset",
                                  i, (unsigned long long)s.start, (unsigned long long)s.k0,
                                  (unsigned long long)s.q0, (unsigned long long)s.np);
        if (s.np == 0)
            head = s;
        else if ((uint64_t)s.p0 != head.q0 || s.np != head.nq)
            return rlhf__ref_fail(
                r, RLHF_E_UNSUPPORTED,
                "row %u: prefix of %llu tokens at %llu; backward needs the row before the ones "
                "that share it, %llu tokens at %llu",
                i, (unsigned long long)s.np, (unsigned long long)s.p0, (unsigned long long)head.nq,
                (unsigned long long)head.q0);
    }
    return RLHF_OK;
}

static rlhf_status attention_bwd(void *ctx, const rlhf_attn *attn, const rlhf_ragged *rows,
                                 rlhf_dev dq, rlhf_dev dk, rlhf_dev dv, rlhf_dev dout, rlhf_dev out,
                                 rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    rlhf_attn own_attn;
    rlhf_ragged own_rows;
    const rlhf_attn *a = &own_attn;
    const rlhf_ragged *r = &own_rows;
    RLHF_TRY(rlhf__ref_attn_read(ctx, "attention_bwd", &own_attn, attn));
    RLHF_TRY(rlhf__ref_ragged_read(ctx, "attention_bwd", &own_rows, rows));
    const uint64_t q_bytes = rlhf__ref_attn_bytes(a, a->heads, r->total, a->q_stride);
    const uint64_t kv_bytes = rlhf__ref_attn_bytes(a, a->kv_heads, r->total, a->kv_stride);
    const uint64_t out_bytes = rlhf__ref_attn_bytes(a, a->heads, r->total, a->out_stride);
    const struct rlhf__ref_use uses[] = {
        {dq, q_bytes},    {dk, kv_bytes},
        {dv, kv_bytes},   {dout, out_bytes},
        {out, out_bytes}, rlhf__ref_range(lse, r->total, (uint64_t)a->heads * sizeof(float)),
        {q, q_bytes},     {k, kv_bytes},
        {v, kv_bytes},    RLHF__REF_RAGGED_USES(r)};
    const uint64_t dim = (uint64_t)a->head_dim, nk = r->max_k;
    double *scratch;
    RLHF_TRY(rlhf__ref_scratch(ctx, nk * (2 * dim + 3), sizeof *scratch, &scratch));
    const struct bwd b = {a,
                          dq,
                          dk,
                          dv,
                          dout,
                          out,
                          lse,
                          q,
                          k,
                          v,
                          scratch,
                          scratch + nk * dim,
                          scratch + 2 * nk * dim,
                          scratch + 2 * nk * dim + nk,
                          scratch + 2 * nk * dim + 2 * nk};
    rlhf_status st = rlhf__ref_enter(ctx, "attention_bwd", uses, RLHF__REF_COUNT(uses));
    if (st == RLHF_OK) st = check_training_layout(ctx, r);
    for (uint32_t i = 0, next; st == RLHF_OK && i < r->n; i = next) {
        for (next = i + 1; next < r->n && rlhf__ref_ragged_span(r, next).np; next++) {
        }
        family_bwd(&b, r, i, next);
    }
    free(scratch);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_attention_bwd(rlhf_compute *t) { t->attention_bwd = attention_bwd; }
