// rope.c: rotary positions (Su et al. 2021) on queries and keys, optionally after an RMS norm of
// each head, or of all queries and all keys of a row, and the derivative.
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
        rlhf__ref_optional((g)->gamma_q, span(g, 0) * (uint64_t)(g)->head_dim, sizeof(float)),     \
        rlhf__ref_optional((g)->gamma_k, span(g, (uint64_t)(g)->heads) * (uint64_t)(g)->head_dim,  \
                           sizeof(float)),                                                         \
        rlhf__ref_optional((g)->raw, (rows)*rope_width(g), rlhf_dtype_size((g)->dtype)),           \
        rlhf__ref_optional((g)->stats, (rows)*norms_of(g), sizeof(float))

static uint64_t rope_width(const rlhf_rope *g) {
    return ((uint64_t)g->heads + (uint64_t)g->kv_heads) * (uint64_t)g->head_dim;
}

// The number of heads whose norm begins at head h of a row.
static uint64_t span(const rlhf_rope *g, uint64_t h) {
    if (!g->whole) return 1;
    return (uint64_t)(h < (uint64_t)g->heads ? g->heads : g->kv_heads);
}

// The number of norms of a row.
static uint64_t norms_of(const rlhf_rope *g) {
    return g->whole ? 2 : (uint64_t)g->heads + (uint64_t)g->kv_heads;
}

// The heads of one norm in row t of x.
struct part {
    uint64_t width;        // elements of all these heads
    uint64_t x, raw, stat; // indices in x, raw and stats
    const float *gamma, *turn;
};

static struct part part_of(const rlhf_rope *g, uint64_t t, uint64_t h, uint64_t norm) {
    const uint64_t dim = (uint64_t)g->head_dim, turned = (uint64_t)g->rotary_dim;
    return (struct part){
        .width = span(g, h) * dim,
        .x = t * (uint64_t)g->stride + h * dim,
        .raw = t * rope_width(g) + h * dim,
        .stat = t * norms_of(g) + norm,
        .gamma = rlhf__ref_f32(h < (uint64_t)g->heads ? g->gamma_q : g->gamma_k),
        .turn = rlhf__ref_f32(g->turn) + (uint64_t)rlhf__ref_i32(g->pos)[t] * turned,
    };
}

// Normalizes and rotates the heads of p. n[p->width] is scratch memory.
static void turn_part(const rlhf_rope *g, rlhf_dev x, const struct part *p, double *n) {
    const uint64_t dim = (uint64_t)g->head_dim, turned = (uint64_t)g->rotary_dim, half = turned / 2;
    for (uint64_t c = 0; c < p->width; c++) {
        n[c] = rlhf__ref_get(x, g->dtype, p->x + c);
        if (g->raw) rlhf__ref_put(g->raw, g->dtype, p->raw + c, n[c]);
    }
    if (g->gamma_q) {
        double sum = 0.0;
        for (uint64_t c = 0; c < p->width; c++)
            sum += n[c] * n[c];
        const double rinv = 1.0 / sqrt(sum / (double)p->width + g->eps);
        for (uint64_t c = 0; c < p->width; c++)
            n[c] *= (double)((float)g->gamma_offset + p->gamma[c]) * rinv;
        if (g->stats) rlhf__ref_f32(g->stats)[p->stat] = (float)rinv;
    }
    for (uint64_t at = 0; at < p->width; at += dim) {
        for (uint64_t c = 0; c < half; c++) {
            const double cs = (double)p->turn[c], sn = (double)p->turn[half + c];
            const double u = n[at + c], v = n[at + c + half];
            rlhf__ref_put(x, g->dtype, p->x + at + c, u * cs - v * sn);
            rlhf__ref_put(x, g->dtype, p->x + at + c + half, v * cs + u * sn);
        }
        for (uint64_t c = turned; g->gamma_q && c < dim; c++)
            rlhf__ref_put(x, g->dtype, p->x + at + c, n[at + c]);
    }
}

static rlhf_status rope(void *ctx, const rlhf_rope *from, rlhf_dev x, uint32_t n_rows) {
    rlhf_rope own;
    const rlhf_rope *g = &own;
    RLHF_TRY(rope_read(ctx, "rope", &own, from));
    const uint64_t rows = n_rows, heads = (uint64_t)g->heads + (uint64_t)g->kv_heads;
    const struct rlhf__ref_use uses[] = {ROPE_USES(g, x, rows)};
    double *n;
    RLHF_TRY(rlhf__ref_scratch(ctx, rope_width(g), sizeof *n, &n));
    rlhf_status st = rlhf__ref_enter(ctx, "rope", uses, RLHF__REF_COUNT(uses));
    if (st < 0) {
        free(n);
        return st;
    }
    st = check_pos(ctx, g, n_rows);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++)
        for (uint64_t h = 0, norm = 0; h < heads; h += span(g, h), norm++) {
            const struct part p = part_of(g, t, h, norm);
            turn_part(g, x, &p, n);
        }
    free(n);
    return rlhf__ref_leave(ctx, st);
}

// The derivative of turn_part. Adds the derivative of this norm's gamma to sum[p->width].
static void turn_part_bwd(const rlhf_rope *g, rlhf_dev dx, const struct part *p, double *n,
                          double *sum) {
    const uint64_t dim = (uint64_t)g->head_dim, turned = (uint64_t)g->rotary_dim, half = turned / 2;
    for (uint64_t at = 0; at < p->width; at += dim) {
        for (uint64_t c = 0; c < half; c++) {
            const double cs = (double)p->turn[c], sn = (double)p->turn[half + c];
            const double a = rlhf__ref_get(dx, g->dtype, p->x + at + c);
            const double b = rlhf__ref_get(dx, g->dtype, p->x + at + c + half);
            n[at + c] = a * cs + b * sn;
            n[at + c + half] = b * cs - a * sn;
        }
        for (uint64_t c = turned; c < dim; c++)
            n[at + c] = rlhf__ref_get(dx, g->dtype, p->x + at + c);
    }
    if (g->gamma_q) {
        const double rinv = (double)rlhf__ref_f32(g->stats)[p->stat];
        double dot = 0.0;
        for (uint64_t c = 0; c < p->width; c++) {
            const double xhat = rlhf__ref_get(g->raw, g->dtype, p->raw + c) * rinv;
            sum[c] += n[c] * xhat;
            n[c] *= (double)((float)g->gamma_offset + p->gamma[c]);
            dot += n[c] * xhat;
        }
        for (uint64_t c = 0; c < p->width; c++) {
            const double xhat = rlhf__ref_get(g->raw, g->dtype, p->raw + c) * rinv;
            n[c] = (n[c] - xhat * dot / (double)p->width) * rinv;
        }
    }
    for (uint64_t c = 0; c < p->width; c++)
        rlhf__ref_put(dx, g->dtype, p->x + c, n[c]);
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
    const uint64_t rows = n_rows, dim = (uint64_t)g->head_dim, width = rope_width(g);
    const uint64_t queries = (uint64_t)g->heads, heads = queries + (uint64_t)g->kv_heads;
    const uint64_t of_q = span(g, 0) * dim, of_k = span(g, queries) * dim;
    const struct rlhf__ref_use uses[] = {ROPE_USES(g, dx, rows),
                                         rlhf__ref_optional(dgamma_q, of_q, sizeof(float)),
                                         rlhf__ref_optional(dgamma_k, of_k, sizeof(float))};
    double *n; // numbers of the heads of a norm, then the sums of gamma_q and gamma_k
    RLHF_TRY(rlhf__ref_scratch(ctx, width + of_q + of_k, sizeof *n, &n));
    double *const sum_q = n + width, *const sum_k = sum_q + of_q;
    for (uint64_t c = 0; c < of_q + of_k; c++)
        sum_q[c] = 0.0;
    rlhf_status st = rlhf__ref_enter(ctx, "rope_bwd", uses, RLHF__REF_COUNT(uses));
    if (st < 0) {
        free(n);
        return st;
    }
    st = check_pos(ctx, g, n_rows);
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++)
        for (uint64_t h = 0, norm = 0; h < heads; h += span(g, h), norm++) {
            const struct part p = part_of(g, t, h, norm);
            turn_part_bwd(g, dx, &p, n, h < queries ? sum_q : sum_k);
        }
    if (st == RLHF_OK) {
        add_sums(dgamma_q, sum_q, of_q);
        add_sums(dgamma_k, sum_k, of_k);
    }
    free(n);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_rope(rlhf_compute *t) {
    t->rope = rope;
    t->rope_bwd = rope_bwd;
}
