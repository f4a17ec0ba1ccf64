// delta.c: the gated delta rule (Yang, Kautz and Hatamizadeh 2024), token by token.
//
// S = g S, S += k (b (v - S^T k))^T, out = S^T q. The state is rounded to f32 after every token,
// because a later call may continue with it.
#include "delta.h"
#include "number.h"
#include "ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__ref_delta_struct(struct rlhf__ref *r, const char *op, rlhf_delta *d,
                                   const rlhf_delta *from) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, d, sizeof *d, from, RLHF_SIZE_TO(rlhf_delta, dt_bias)));
    RLHF_TRY(rlhf__ref_check_dtype(r, op, d->dtype));
    if (d->heads < 1 || d->key_heads < 1 || d->heads % d->key_heads)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "key_heads is %d, must divide heads (%d)",
                              d->key_heads, d->heads);
    if (d->key_dim < 1 || d->value_dim < 1)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "key_dim is %d and value_dim %d, must be at least 1", d->key_dim,
                              d->value_dim);
    const int64_t out = (int64_t)d->heads * d->value_dim;
    if (d->x_stride < 2 * (int64_t)d->key_heads * d->key_dim + out || d->gate_stride < d->heads ||
        d->out_stride < out)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "%d heads (%d of keys) of %d and %d do not fit strides x %lld, gate "
                              "%lld, out %lld",
                              d->heads, d->key_heads, d->key_dim, d->value_dim,
                              (long long)d->x_stride, (long long)d->gate_stride,
                              (long long)d->out_stride);
    return RLHF_OK;
}

uint64_t rlhf__ref_delta_width(const rlhf_delta *d) {
    return 2 * (uint64_t)d->key_heads * (uint64_t)d->key_dim +
           (uint64_t)d->heads * (uint64_t)d->value_dim;
}

uint64_t rlhf__ref_delta_state(const rlhf_delta *d) {
    return (uint64_t)d->key_dim * (uint64_t)d->value_dim;
}

rlhf_status rlhf__ref_delta_token_scratch(struct rlhf__ref *r, const rlhf_delta *d,
                                          struct rlhf__ref_delta_token *t, void **out) {
    const uint64_t kd = (uint64_t)d->key_dim, vd = (uint64_t)d->value_dim;
    double *p;
    RLHF_TRY(rlhf__ref_scratch(r, 2 * kd + 3 * vd, sizeof *p, &p));
    t->q = p;
    t->k = p + kd;
    t->v = p + 2 * kd;
    t->error = t->v + vd;
    t->out = t->error + vd;
    *out = p;
    return RLHF_OK;
}

// Reads x[at .. at+n-1], divided by its length, times scale. Returns 1 / length.
static double read_unit(double *out, rlhf_dev x, int32_t dtype, uint64_t at, uint64_t n,
                        double scale, double eps) {
    double sum = 0.0;
    for (uint64_t c = 0; c < n; c++) {
        out[c] = rlhf__ref_get(x, dtype, at + c);
        sum += out[c] * out[c];
    }
    const double inv = 1.0 / sqrt(sum + eps);
    for (uint64_t c = 0; c < n; c++)
        out[c] *= inv * scale;
    return inv;
}

void rlhf__ref_delta_read_token(const struct rlhf__ref_delta *a, uint64_t row, uint64_t h,
                                struct rlhf__ref_delta_token *t) {
    const rlhf_delta *d = a->d;
    const uint64_t kd = (uint64_t)d->key_dim, vd = (uint64_t)d->value_dim;
    const uint64_t keys = (uint64_t)d->key_heads, group = (uint64_t)d->heads / keys;
    const uint64_t at = row * (uint64_t)d->x_stride, gate = row * (uint64_t)d->gate_stride + h;
    t->q_inv = read_unit(t->q, a->x, d->dtype, at + h / group * kd, kd, d->scale, d->eps);
    t->k_inv = read_unit(t->k, a->x, d->dtype, at + (keys + h / group) * kd, kd, 1.0, d->eps);
    for (uint64_t c = 0; c < vd; c++)
        t->v[c] = rlhf__ref_get(a->x, d->dtype, at + 2 * keys * kd + h * vd + c);
    const double z = rlhf__ref_get(a->alpha, d->dtype, gate) + (double)rlhf__ref_f32(d->dt_bias)[h];
    const double softplus = (z > 0.0 ? z : 0.0) + log1p(exp(-fabs(z)));
    t->g = exp(-exp((double)rlhf__ref_f32(d->a_log)[h]) * softplus);
    t->b = 1.0 / (1.0 + exp(-rlhf__ref_get(a->beta, d->dtype, gate)));
}

void rlhf__ref_delta_step(const rlhf_delta *d, const float *from, float *to,
                          struct rlhf__ref_delta_token *t) {
    const uint64_t kd = (uint64_t)d->key_dim, vd = (uint64_t)d->value_dim;
    for (uint64_t c = 0; c < vd; c++) {
        double read = 0.0, out = 0.0;
        for (uint64_t k = 0; k < kd; k++)
            read += t->g * (double)from[k * vd + c] * t->k[k];
        t->error[c] = t->v[c] - read;
        for (uint64_t k = 0; k < kd; k++) {
            const double s = t->g * (double)from[k * vd + c] + t->k[k] * t->b * t->error[c];
            to[k * vd + c] = (float)s;
            out += (double)to[k * vd + c] * t->q[k];
        }
        t->out[c] = out;
    }
}

// Processes row i of value head h. `s` is the row's state, which already has its first value.
static void head_row(const struct rlhf__ref_delta *a, const struct rlhf__ref_row *row, uint64_t h,
                     float *s, struct rlhf__ref_delta_token *t, rlhf_dev out) {
    const rlhf_delta *d = a->d;
    const uint64_t vd = (uint64_t)d->value_dim;
    for (uint64_t i = row->t0; i < row->t0 + row->n; i++) {
        rlhf__ref_delta_read_token(a, i, h, t);
        rlhf__ref_delta_step(d, s, s, t);
        for (uint64_t c = 0; c < vd; c++)
            rlhf__ref_put(out, d->dtype, i * (uint64_t)d->out_stride + h * vd + c, t->out[c]);
    }
}

// Processes all rows of value head h, in order. s and prefix are scratch memory for a state each.
static void head_rows(const struct rlhf__ref_delta *a, const struct rlhf__ref_rows *w, uint64_t h,
                      float *s, float *prefix, struct rlhf__ref_delta_token *t, rlhf_dev out) {
    const uint64_t n = rlhf__ref_delta_state(a->d);
    for (uint32_t i = 0; i < w->g.n; i++) {
        const struct rlhf__ref_row row = rlhf__ref_row_at(w, i);
        const float *from = rlhf__ref_state_from(w, i);
        float *to = rlhf__ref_state_to(w, i);
        if (from)
            memcpy(s, from + h * n, n * sizeof *s);
        else if (row.np)
            memcpy(s, prefix, n * sizeof *s);
        else
            memset(s, 0, n * sizeof *s);
        head_row(a, &row, h, s, t, out);
        if (to) memcpy(to + h * n, s, n * sizeof *s);
        if (!row.np) memcpy(prefix, s, n * sizeof *s);
    }
}

static rlhf_status delta(void *ctx, const rlhf_delta *from, const rlhf_ragged *rows,
                         const rlhf_states *states, rlhf_dev out, rlhf_dev x, rlhf_dev beta,
                         rlhf_dev alpha) {
    rlhf_delta own;
    struct rlhf__ref_rows own_rows;
    struct rlhf__ref_delta_token t;
    void *token = NULL;
    float *s = NULL;
    const rlhf_delta *d = &own;
    const struct rlhf__ref_rows *w = &own_rows;
    RLHF_TRY(rlhf__ref_delta_struct(ctx, "delta", &own, from));
    const uint64_t heads = (uint64_t)d->heads, n = rlhf__ref_delta_state(d);
    RLHF_TRY(rlhf__ref_rows_read(ctx, "delta", &own_rows, rows, states, heads * n * sizeof(float)));
    const uint64_t total = w->g.total,
                   gates = rlhf__ref_strided(total, d->gate_stride, heads, d->dtype);
    const struct rlhf__ref_use uses[] = {
        {out, rlhf__ref_strided(total, d->out_stride, heads * (uint64_t)d->value_dim, d->dtype)},
        {x, rlhf__ref_strided(total, d->x_stride, rlhf__ref_delta_width(d), d->dtype)},
        {beta, gates},
        {alpha, gates},
        rlhf__ref_range(d->a_log, heads, sizeof(float)),
        rlhf__ref_range(d->dt_bias, heads, sizeof(float)),
        RLHF__REF_ROWS_USES(w)};
    RLHF_TRY(rlhf__ref_delta_token_scratch(ctx, d, &t, &token));
    rlhf_status st = rlhf__ref_scratch(ctx, 2 * n, sizeof *s, &s);
    if (st == RLHF_OK) st = rlhf__ref_enter(ctx, "delta", uses, RLHF__REF_COUNT(uses));
    if (st == RLHF_OK) st = rlhf__ref_rows_check(ctx, w);
    for (uint64_t h = 0; st == RLHF_OK && h < heads; h++)
        head_rows(&(const struct rlhf__ref_delta){d, x, beta, alpha}, w, h, s, s + n, &t, out);
    free(s);
    free(token);
    return rlhf__ref_leave(ctx, st);
}

rlhf_status rlhf__ref_supports_delta(struct rlhf__ref *r, const char *op, const rlhf_delta *from) {
    rlhf_delta d;
    return rlhf__ref_delta_struct(r, op, &d, from);
}

void rlhf__ref_fill_delta(rlhf_compute *t) { t->delta = delta; }
