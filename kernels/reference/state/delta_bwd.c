// delta_bwd.c: the derivative of the gated delta rule in the training layout.
//
// Of one token, with T = g S the decayed state, e = v - T^T k, S' = T + k (b e)^T, out = S'^T q,
// and D the gradient of S' by all later tokens:
//   D += q dout^T, dq = S' dout, f = D^T k, db = f . e, dv = b f, dk = b D e - T dv,
//   D -= k dv^T, d(log g) = sum of D * T, D = g D.
// With log g = -exp(a_log) softplus(z) and z = alpha + dt_bias:
//   dz = -exp(a_log) sigmoid(z) d(log g), d a_log = log g d(log g).
// The gradients pass a norm y = s x / |x| as dx = (s dy - x / |x| (x / |x| . s dy)) / |x|.
// The states after every token of a row are kept, together with those of its prefix.
#include "delta.h"
#include "number.h"
#include "ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The tensors of a call, and its scratch memory. `group` is the number of value heads that share a
// key head.
struct bwd {
    struct rlhf__ref_delta a;
    const struct rlhf__ref_rows *w;
    rlhf_dev dx, dbeta, dalpha, dout;
    uint64_t group, n;         // n: elements of a state
    float *first, *states;     // [group, max_q + 1, n] of a row that others share; [max_q + 1, n]
    double *last;              // [group, n]: gradient of that row's last state
    double *grad;              // [n]: D
    double *dqk;               // [max_q, 2, key_dim]: gradients of normalized queries and keys
    double *da_log, *ddt_bias; // [heads]
    struct rlhf__ref_delta_token t;
};

static void forward_row(struct bwd *b, const struct rlhf__ref_row *row, uint64_t h, float *states) {
    for (uint64_t i = 0; i < row->n; i++) {
        rlhf__ref_delta_read_token(&b->a, row->t0 + i, h, &b->t);
        rlhf__ref_delta_step(b->a.d, states + i * b->n, states + (i + 1) * b->n, &b->t);
    }
}

// Stores the gradients of beta and alpha of a token.
static void put_gates(struct bwd *b, uint64_t row, uint64_t h, double db, double dlog) {
    const rlhf_delta *d = b->a.d;
    const uint64_t at = row * (uint64_t)d->gate_stride + h;
    const double a = exp((double)rlhf__ref_f32(d->a_log)[h]);
    const double z = rlhf__ref_get(b->a.alpha, d->dtype, at) + (double)rlhf__ref_f32(d->dt_bias)[h];
    const double softplus = (z > 0.0 ? z : 0.0) + log1p(exp(-fabs(z)));
    const double dz = -a / (1.0 + exp(-z)) * dlog;
    rlhf__ref_put(b->dbeta, d->dtype, at, db * b->t.b * (1.0 - b->t.b));
    rlhf__ref_put(b->dalpha, d->dtype, at, dz);
    b->da_log[h] -= a * softplus * dlog;
    b->ddt_bias[h] += dz;
}

// Processes token `i` of the row. Before: b->grad is the gradient of the state after the token by
// later tokens. After: that of the state before the token.
static void token_bwd(struct bwd *b, const struct rlhf__ref_row *row, uint64_t h, uint64_t i,
                      const float *before, float *after) {
    const rlhf_delta *d = b->a.d;
    struct rlhf__ref_delta_token *t = &b->t;
    const uint64_t kd = (uint64_t)d->key_dim, vd = (uint64_t)d->value_dim;
    const uint64_t out = (row->t0 + i) * (uint64_t)d->out_stride + h * vd;
    const uint64_t x =
        (row->t0 + i) * (uint64_t)d->x_stride + 2 * (uint64_t)d->key_heads * kd + h * vd;
    double *dq = b->dqk + 2 * i * kd, *dk = dq + kd, db = 0.0, dlog = 0.0;
    rlhf__ref_delta_read_token(&b->a, row->t0 + i, h, t);
    rlhf__ref_delta_step(d, before, after, t); // only for t->error
    for (uint64_t c = 0; c < vd; c++) {
        const double o = rlhf__ref_get(b->dout, d->dtype, out + c);
        double f = 0.0;
        for (uint64_t k = 0; k < kd; k++) {
            double *g = b->grad + k * vd + c;
            *g += t->q[k] * o;
            dq[k] += (double)after[k * vd + c] * o;
            f += *g * t->k[k];
        }
        const double dv = t->b * f;
        rlhf__ref_put(b->dx, d->dtype, x + c, dv);
        db += f * t->error[c];
        for (uint64_t k = 0; k < kd; k++) {
            double *g = b->grad + k * vd + c;
            const double decayed = t->g * (double)before[k * vd + c];
            dk[k] += t->b * *g * t->error[c] - decayed * dv;
            *g -= t->k[k] * dv;
            dlog += *g * decayed;
            *g *= t->g;
        }
    }
    put_gates(b, row->t0 + i, h, db, dlog);
}

// Stores the gradient of x[at .. at+n-1] from that of its normalized value. y is the value before
// the normalization, read again.
static void put_unit(const struct bwd *b, uint64_t at, const double *dy, double scale) {
    const rlhf_delta *d = b->a.d;
    const uint64_t n = (uint64_t)d->key_dim;
    double sum = 0.0, dot = 0.0;
    for (uint64_t c = 0; c < n; c++) {
        const double x = rlhf__ref_get(b->a.x, d->dtype, at + c);
        sum += x * x;
        dot += x * scale * dy[c];
    }
    const double inv = 1.0 / sqrt(sum + d->eps);
    for (uint64_t c = 0; c < n; c++)
        rlhf__ref_put(
            b->dx, d->dtype, at + c,
            inv * (scale * dy[c] - rlhf__ref_get(b->a.x, d->dtype, at + c) * inv * inv * dot));
}

// Processes the value heads of key head kh in a row, last token first. If `shared` is set, the row
// is the one whose states are in b->first, and the gradients of its last states are in b->last.
// Otherwise adds the gradients of the states with which the row began to b->last.
static void row_bwd(struct bwd *b, const struct rlhf__ref_row *row, uint64_t kh, int shared) {
    const rlhf_delta *d = b->a.d;
    const uint64_t kd = (uint64_t)d->key_dim, each = (b->w->g.max_q + 1) * b->n;
    memset(b->dqk, 0, row->n * 2 * kd * sizeof *b->dqk);
    for (uint64_t j = 0; j < b->group; j++) {
        float *states = shared ? b->first + j * each : b->states;
        const uint64_t h = kh * b->group + j;
        if (!shared) {
            memcpy(states, b->first + j * each + row->np * b->n, b->n * sizeof *states);
            forward_row(b, row, h, states);
        }
        if (shared)
            memcpy(b->grad, b->last + j * b->n, b->n * sizeof *b->grad);
        else
            memset(b->grad, 0, b->n * sizeof *b->grad);
        for (uint64_t i = row->n; i-- > 0;)
            token_bwd(b, row, h, i, states + i * b->n, states + (i + 1) * b->n);
        for (uint64_t e = 0; !shared && e < b->n; e++)
            b->last[j * b->n + e] += b->grad[e];
    }
    for (uint64_t i = 0; i < row->n; i++) {
        const uint64_t at = (row->t0 + i) * (uint64_t)d->x_stride + kh * kd;
        put_unit(b, at, b->dqk + 2 * i * kd, d->scale);
        put_unit(b, at + (uint64_t)d->key_heads * kd, b->dqk + (2 * i + 1) * kd, 1.0);
    }
}

// Processes rows i0 .. i1-1 of key head kh. Row i0 is the prefix of the others.
static void family_bwd(struct bwd *b, uint64_t kh, uint32_t i0, uint32_t i1) {
    const struct rlhf__ref_row first = rlhf__ref_row_at(b->w, i0);
    const uint64_t each = (b->w->g.max_q + 1) * b->n;
    memset(b->last, 0, b->group * b->n * sizeof *b->last);
    for (uint64_t j = 0; j < b->group; j++) {
        memset(b->first + j * each, 0, b->n * sizeof *b->first);
        forward_row(b, &first, kh * b->group + j, b->first + j * each);
    }
    for (uint32_t i = i0 + 1; i < i1; i++) {
        const struct rlhf__ref_row row = rlhf__ref_row_at(b->w, i);
        row_bwd(b, &row, kh, 0);
    }
    row_bwd(b, &first, kh, 1);
}

// Allocates the scratch memory of *b in *floats and *doubles, which the caller frees.
static rlhf_status get_scratch(struct rlhf__ref *r, struct bwd *b, float **floats,
                               double **doubles) {
    const rlhf_delta *d = b->a.d;
    const uint64_t each = (b->w->g.max_q + 1ull) * b->n, heads = (uint64_t)d->heads;
    const uint64_t dqk = (uint64_t)b->w->g.max_q * 2 * (uint64_t)d->key_dim;
    RLHF_TRY(rlhf__ref_scratch(r, (b->group + 1) * each, sizeof **floats, floats));
    RLHF_TRY(
        rlhf__ref_scratch(r, (b->group + 1) * b->n + dqk + 2 * heads, sizeof **doubles, doubles));
    b->first = *floats;
    b->states = *floats + b->group * each;
    b->last = *doubles;
    b->grad = b->last + b->group * b->n;
    b->dqk = b->grad + b->n;
    b->da_log = b->dqk + dqk;
    b->ddt_bias = b->da_log + heads;
    memset(b->da_log, 0, 2 * heads * sizeof *b->da_log);
    return RLHF_OK;
}

static void add_sums(rlhf_dev to, const double *sum, uint64_t n) {
    for (uint64_t h = 0; to && h < n; h++)
        rlhf__ref_f32(to)[h] = (float)((double)rlhf__ref_f32(to)[h] + sum[h]);
}

static rlhf_status delta_bwd(void *ctx, const rlhf_delta *from, const rlhf_ragged *rows,
                             rlhf_dev dx, rlhf_dev dbeta, rlhf_dev dalpha, rlhf_dev da_log,
                             rlhf_dev ddt_bias, rlhf_dev dout, rlhf_dev x, rlhf_dev beta,
                             rlhf_dev alpha) {
    rlhf_delta own;
    struct rlhf__ref_rows w;
    float *floats = NULL;
    double *doubles = NULL;
    void *token = NULL;
    RLHF_TRY(rlhf__ref_delta_struct(ctx, "delta_bwd", &own, from));
    RLHF_TRY(rlhf__ref_rows_read(ctx, "delta_bwd", &w, rows, NULL, 0));
    struct bwd b = {.a = {&own, x, beta, alpha},
                    .w = &w,
                    .dx = dx,
                    .dbeta = dbeta,
                    .dalpha = dalpha,
                    .dout = dout,
                    .group = (uint64_t)(own.heads / own.key_heads),
                    .n = rlhf__ref_delta_state(&own)};
    const uint64_t heads = (uint64_t)own.heads, total = w.g.total;
    const uint64_t x_bytes =
        rlhf__ref_strided(total, own.x_stride, rlhf__ref_delta_width(&own), own.dtype);
    const uint64_t gates = rlhf__ref_strided(total, own.gate_stride, heads, own.dtype);
    const uint64_t out_bytes =
        rlhf__ref_strided(total, own.out_stride, heads * (uint64_t)own.value_dim, own.dtype);
    const struct rlhf__ref_use uses[] = {{dx, x_bytes},
                                         {dbeta, gates},
                                         {dalpha, gates},
                                         rlhf__ref_optional(da_log, heads, sizeof(float)),
                                         rlhf__ref_optional(ddt_bias, heads, sizeof(float)),
                                         {dout, out_bytes},
                                         {x, x_bytes},
                                         {beta, gates},
                                         {alpha, gates},
                                         rlhf__ref_range(own.a_log, heads, sizeof(float)),
                                         rlhf__ref_range(own.dt_bias, heads, sizeof(float)),
                                         RLHF__REF_ROWS_USES(&w)};
    RLHF_TRY(rlhf__ref_delta_token_scratch(ctx, &own, &b.t, &token));
    rlhf_status st = get_scratch(ctx, &b, &floats, &doubles);
    if (st == RLHF_OK) st = rlhf__ref_enter(ctx, "delta_bwd", uses, RLHF__REF_COUNT(uses));
    if (st == RLHF_OK) st = rlhf__ref_rows_check(ctx, &w);
    for (uint32_t i = 0, next; st == RLHF_OK && i < w.g.n; i = next) {
        for (next = i + 1; next < w.g.n && rlhf__ref_row_at(&w, next).np; next++) {
        }
        for (uint64_t kh = 0; kh < (uint64_t)own.key_heads; kh++)
            family_bwd(&b, kh, i, next);
    }
    if (st == RLHF_OK) {
        add_sums(da_log, b.da_log, heads);
        add_sums(ddt_bias, b.ddt_bias, heads);
    }
    free(floats);
    free(doubles);
    free(token);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_delta_bwd(rlhf_compute *t) { t->delta_bwd = delta_bwd; }
