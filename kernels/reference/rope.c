// rope.c: rotary positions (Su et al. 2021) on queries and keys, optionally after an RMS norm of
// each head, and the derivative.
//
// With gamma standing for gamma_offset + gamma and n = gamma xhat, xhat = x r, r = 1 /
// sqrt(mean(x^2) + eps) (without the norm, n = x), and c < h = rotary_dim / 2:
//   y_c = n_c cos - n_{c+h} sin, y_{c+h} = n_{c+h} cos + n_c sin;
//   dn_c = dy_c cos + dy_{c+h} sin, dn_{c+h} = dy_{c+h} cos - dy_c sin;
//   y_c = n_c and dn_c = dy_c for the elements from rotary_dim on;
//   dgamma += dn xhat, dx = (gamma dn - xhat mean(gamma dn xhat)) r.
#include "number.h"
#include "ops.h"
#include <math.h>
#include <stdlib.h>

// Copy the caller's struct to *g, and check its members. If kv_heads is 0, sets it to heads; if
// rotary_dim is 0, sets it to head_dim.
static rlhf_status rope_read(struct rlhf__ref *r, const char *op, rlhf_rope *g,
                             const rlhf_rope *from) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, g, sizeof *g, from, RLHF_SIZE_TO(rlhf_rope, stats)));
    RLHF_TRY(rlhf__ref_check_dtype(r, op, g->dtype));
    if (!g->kv_heads) g->kv_heads = g->heads;
    if (!g->rotary_dim) g->rotary_dim = g->head_dim;
    if (g->heads < 1 || g->kv_heads < 1 || g->head_dim < 2 || g->head_dim % 2 || g->n_pos < 1)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "%d heads, %d of keys, head_dim %d (which must be even), n_pos %d",
                              g->heads, g->kv_heads, g->head_dim, g->n_pos);
    if (g->rotary_dim < 0 || g->rotary_dim > g->head_dim || g->rotary_dim % 2)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "rotary_dim %d must be even and at most head_dim %d", g->rotary_dim,
                              g->head_dim);
    const int64_t width = ((int64_t)g->heads + g->kv_heads) * g->head_dim;
    if (g->stride < width)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "stride is %lld, queries and keys have %lld",
                              (long long)g->stride, (long long)width);
    if (!g->gamma_q != !g->gamma_k || !g->raw != !g->stats)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "gamma_q and gamma_k, and raw and stats, must both be NULL or none");
    if (g->raw && !g->gamma_q)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "raw and stats are there without gamma");
    return RLHF_OK;
}

static rlhf_status check_pos(struct rlhf__ref *r, const rlhf_rope *g, uint32_t rows) {
    for (uint32_t t = 0; t < rows; t++) {
        const int32_t p = rlhf__ref_i32(g->pos)[t];
        if (p < 0 || p >= g->n_pos)
            return rlhf__ref_fail(r, RLHF_E_INVALID, "pos[%u] = %d, allowed is 0 to %d", t, p,
                                  g->n_pos - 1);
    }
    return RLHF_OK;
}

// The device ranges that a call uses on x or dx.
#define ROPE_USES(g, x, rows)                                                                      \
    {(x), (rows)                                                                                   \
              ? (((rows)-1) * (uint64_t)(g)->stride + rope_width(g)) * rlhf_dtype_size((g)->dtype) \
              : 0},                                                                                \
        rlhf__ref_range((g)->pos, (rows), sizeof(int32_t)),                                        \
        rlhf__ref_range((g)->turn, (uint64_t)(g)->n_pos *(uint64_t)(g)->rotary_dim,                \
                        sizeof(float)),                                                            \
        rlhf__ref_optional((g)->gamma_q, (uint64_t)(g)->head_dim, sizeof(float)),                  \
        rlhf__ref_optional((g)->gamma_k, (uint64_t)(g)->head_dim, sizeof(float)),                  \
        rlhf__ref_optional((g)->raw, (rows)*rope_width(g), rlhf_dtype_size((g)->dtype)),           \
        rlhf__ref_optional((g)->stats, (rows)*rope_width(g) / (uint64_t)(g)->head_dim,             \
                           sizeof(float))

static uint64_t rope_width(const rlhf_rope *g) {
    return ((uint64_t)g->heads + (uint64_t)g->kv_heads) * (uint64_t)g->head_dim;
}

// Rotate head h of row t. The head begins at element `at` of x. n[head_dim] is scratch memory.
static void turn_head(const rlhf_rope *g, rlhf_dev x, uint64_t at, uint64_t t, uint64_t h,
                      double *n) {
    const uint64_t dim = (uint64_t)g->head_dim, heads = rope_width(g) / dim;
    const uint64_t turned = (uint64_t)g->rotary_dim, half = turned / 2;
    const float *turn = rlhf__ref_f32(g->turn) + (uint64_t)rlhf__ref_i32(g->pos)[t] * turned;
    for (uint64_t c = 0; c < dim; c++) {
        n[c] = rlhf__ref_get(x, g->dtype, at + c);
        if (g->raw) rlhf__ref_put(g->raw, g->dtype, (t * heads + h) * dim + c, n[c]);
    }
    if (g->gamma_q) {
        const float *gamma = rlhf__ref_f32(h < (uint64_t)g->heads ? g->gamma_q : g->gamma_k);
        double sum = 0.0;
        for (uint64_t c = 0; c < dim; c++)
            sum += n[c] * n[c];
        const double rinv = 1.0 / sqrt(sum / (double)dim + g->eps);
        for (uint64_t c = 0; c < dim; c++)
            n[c] *= (double)((float)g->gamma_offset + gamma[c]) * rinv;
        if (g->stats) rlhf__ref_f32(g->stats)[t * heads + h] = (float)rinv;
    }
    for (uint64_t c = 0; c < half; c++) {
        const double cs = (double)turn[c], sn = (double)turn[half + c];
        rlhf__ref_put(x, g->dtype, at + c, n[c] * cs - n[c + half] * sn);
        rlhf__ref_put(x, g->dtype, at + c + half, n[c + half] * cs + n[c] * sn);
    }
    for (uint64_t c = turned; g->gamma_q && c < dim; c++)
        rlhf__ref_put(x, g->dtype, at + c, n[c]);
}

static rlhf_status rope(void *ctx, const rlhf_rope *from, rlhf_dev x, uint32_t n_rows) {
    rlhf_rope own;
    const rlhf_rope *g = &own;
    RLHF_TRY(rope_read(ctx, "rope", &own, from));
    const uint64_t rows = n_rows, dim = (uint64_t)g->head_dim, heads = rope_width(g) / dim;
    const struct rlhf__ref_use uses[] = {ROPE_USES(g, x, rows)};
    double *n;
    RLHF_TRY(rlhf__ref_scratch(ctx, dim, sizeof *n, &n));
    rlhf_status st = rlhf__ref_enter(ctx, "rope", uses, RLHF__REF_COUNT(uses));
    if (st < 0) {
        free(n);
        return st;
    }
    st = check_pos(ctx, g, n_rows);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++)
        for (uint64_t h = 0; h < heads; h++)
            turn_head(g, x, t * (uint64_t)g->stride + h * dim, t, h, n);
    free(n);
    return rlhf__ref_leave(ctx, st);
}

// The derivative of turn_head. Adds the derivative for this head's gamma to sum[head_dim].
static void turn_head_bwd(const rlhf_rope *g, rlhf_dev dx, uint64_t at, uint64_t t, uint64_t h,
                          double *n, double *sum) {
    const uint64_t dim = (uint64_t)g->head_dim, heads = rope_width(g) / dim;
    const uint64_t turned = (uint64_t)g->rotary_dim, half = turned / 2;
    const float *turn = rlhf__ref_f32(g->turn) + (uint64_t)rlhf__ref_i32(g->pos)[t] * turned;
    for (uint64_t c = 0; c < half; c++) {
        const double cs = (double)turn[c], sn = (double)turn[half + c];
        const double a = rlhf__ref_get(dx, g->dtype, at + c);
        const double b = rlhf__ref_get(dx, g->dtype, at + c + half);
        n[c] = a * cs + b * sn;
        n[c + half] = b * cs - a * sn;
    }
    for (uint64_t c = turned; c < dim; c++)
        n[c] = rlhf__ref_get(dx, g->dtype, at + c);
    if (g->gamma_q) {
        const float *gamma = rlhf__ref_f32(h < (uint64_t)g->heads ? g->gamma_q : g->gamma_k);
        const double rinv = (double)rlhf__ref_f32(g->stats)[t * heads + h];
        double dot = 0.0;
        for (uint64_t c = 0; c < dim; c++) {
            const double xhat = rlhf__ref_get(g->raw, g->dtype, (t * heads + h) * dim + c) * rinv;
            sum[c] += n[c] * xhat;
            n[c] *= (double)((float)g->gamma_offset + gamma[c]);
            dot += n[c] * xhat;
        }
        for (uint64_t c = 0; c < dim; c++) {
            const double xhat = rlhf__ref_get(g->raw, g->dtype, (t * heads + h) * dim + c) * rinv;
            n[c] = (n[c] - xhat * dot / (double)dim) * rinv;
        }
    }
    for (uint64_t c = 0; c < dim; c++)
        rlhf__ref_put(dx, g->dtype, at + c, n[c]);
}

static void add_sums(rlhf_dev to, const double *sum, uint64_t dim) {
    for (uint64_t c = 0; to && c < dim; c++)
        rlhf__ref_f32(to)[c] = (float)((double)rlhf__ref_f32(to)[c] + sum[c]);
}

static rlhf_status rope_bwd(void *ctx, const rlhf_rope *from, rlhf_dev dx, rlhf_dev dgamma_q,
                            rlhf_dev dgamma_k, uint32_t n_rows) {
    rlhf_rope own;
    const rlhf_rope *g = &own;
    RLHF_TRY(rope_read(ctx, "rope_bwd", &own, from));
    if (g->gamma_q ? !g->raw : dgamma_q || dgamma_k)
        return rlhf__ref_fail(ctx, RLHF_E_INVALID,
                              g->gamma_q ? "raw and stats are NULL with gamma"
                                         : "dgamma is there without gamma");
    const uint64_t rows = n_rows, dim = (uint64_t)g->head_dim, heads = rope_width(g) / dim;
    const struct rlhf__ref_use uses[] = {ROPE_USES(g, dx, rows),
                                         rlhf__ref_optional(dgamma_q, dim, sizeof(float)),
                                         rlhf__ref_optional(dgamma_k, dim, sizeof(float))};
    double *n; // numbers of one head, then the sums of gamma_q and gamma_k
    RLHF_TRY(rlhf__ref_scratch(ctx, 3 * dim, sizeof *n, &n));
    for (uint64_t c = dim; c < 3 * dim; c++)
        n[c] = 0.0;
    rlhf_status st = rlhf__ref_enter(ctx, "rope_bwd", uses, RLHF__REF_COUNT(uses));
    if (st < 0) {
        free(n);
        return st;
    }
    st = check_pos(ctx, g, n_rows);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++)
        for (uint64_t h = 0; h < heads; h++)
            turn_head_bwd(g, dx, t * (uint64_t)g->stride + h * dim, t, h, n,
                          n + (h < (uint64_t)g->heads ? dim : 2 * dim));
    if (st == RLHF_OK) {
        add_sums(dgamma_q, n + dim, dim);
        add_sums(dgamma_k, n + 2 * dim, dim);
    }
    free(n);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_rope(rlhf_compute *t) {
    t->rope = rope;
    t->rope_bwd = rope_bwd;
}
