// direction.c: see direction.h.
#include "inspect/direction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double rlhf__dot(const float *x, const double *g, uint64_t n) {
    double sum[8] = {0};
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (uint64_t k = 0; k < 8; k++)
            sum[k] += (double)x[i + k] * g[i + k];
    for (uint64_t k = 0; i < n; i++, k++)
        sum[k] += (double)x[i] * g[i];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

static rlhf_status begin(struct rlhf__direction *out, const struct rlhf__reading *r,
                         struct rlhf__error *err) {
    const rlhf_tap_info *i = &r->tap.info;
    out->d = i->d_model;
    out->norm = i->norm;
    out->eps = i->norm_eps;
    out->gain = r->gain;
    out->norm_bias = r->norm_bias;
    out->u = calloc((size_t)out->d, sizeof *out->u);
    out->normed = calloc((size_t)out->d, sizeof *out->normed);
    if (!out->u || !out->normed) return RLHF__NOMEM(err, "out of memory for a direction");
    return RLHF_OK;
}

// Add `factor` times the mean of the head's rows to out->u, and `factor` times the mean of the
// rows' biases to out->b.
static rlhf_status add_rows(struct rlhf__direction *out, const struct rlhf__tap *t, int32_t head,
                            const int32_t *row, uint32_t n, double factor,
                            struct rlhf__error *err) {
    const size_t d = (size_t)out->d;
    float *w = malloc((n * d + n) * sizeof *w);
    if (!w) return RLHF__NOMEM(err, "out of memory for a direction");
    float *bias = w + n * d;
    rlhf_status st = rlhf__tap_head(t, head, row, n, w, bias, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        for (size_t k = 0; k < d; k++)
            out->u[k] += factor / n * (double)w[i * d + k];
        out->b += factor / n * (double)bias[i];
    }
    free(w);
    return st;
}

rlhf_status rlhf__direction_words(struct rlhf__direction *out, const struct rlhf__reading *r,
                                  const struct rlhf__sides *s, struct rlhf__error *err) {
    RLHF_TRY(begin(out, r, err));
    RLHF_TRY(add_rows(out, &r->tap, RLHF_TAP_LM, s->good, s->n_good, 1, err));
    return add_rows(out, &r->tap, RLHF_TAP_LM, s->bad, s->n_bad, -1, err);
}

rlhf_status rlhf__direction_score(struct rlhf__direction *out, const struct rlhf__reading *r,
                                  double gain, double bias, struct rlhf__error *err) {
    const int32_t first = 0;
    RLHF_TRY(begin(out, r, err));
    RLHF_TRY(add_rows(out, &r->tap, RLHF_TAP_SCORE, &first, 1, gain, err));
    out->b += bias;
    return RLHF_OK;
}

static rlhf_status read_hidden(struct rlhf__direction *out, const struct rlhf__tap *t,
                               struct rlhf__error *err) {
    const size_t n = (size_t)t->info.value_hidden, d = (size_t)out->d;
    const int32_t first = 0;
    float bias;
    int32_t *row = malloc(n * sizeof *row);
    out->hidden = malloc(n * d * sizeof *out->hidden);
    out->hidden_bias = malloc(n * sizeof *out->hidden_bias);
    out->outer = malloc(n * sizeof *out->outer);
    if (!row || !out->hidden || !out->hidden_bias || !out->outer) {
        free(row);
        return RLHF__NOMEM(err, "out of memory for the value head");
    }
    for (size_t i = 0; i < n; i++)
        row[i] = (int32_t)i;
    rlhf_status st = rlhf__tap_head(t, RLHF_TAP_VALUE_HIDDEN, row, (uint32_t)n, out->hidden,
                                    out->hidden_bias, err);
    if (st == RLHF_OK) st = rlhf__tap_head(t, RLHF_TAP_VALUE, &first, 1, out->outer, &bias, err);
    free(row);
    if (st != RLHF_OK) return st;
    out->n_hidden = (int32_t)n;
    out->b = (double)bias;
    return RLHF_OK;
}

rlhf_status rlhf__direction_value(struct rlhf__direction *out, const struct rlhf__reading *r,
                                  struct rlhf__error *err) {
    const int32_t first = 0;
    RLHF_TRY(begin(out, r, err));
    if (r->tap.info.value_hidden) return read_hidden(out, &r->tap, err);
    return add_rows(out, &r->tap, RLHF_TAP_VALUE, &first, 1, 1, err);
}

void rlhf__direction_finish(struct rlhf__direction *dir) {
    free(dir->u);
    free(dir->normed);
    free(dir->hidden);
    free(dir->hidden_bias);
    free(dir->outer);
    memset(dir, 0, sizeof *dir);
}

struct norm {
    double mean, scale;
};

static struct norm norm_of(const struct rlhf__direction *dir, const float *x) {
    const int32_t d = dir->d;
    double mean = 0, square = 0;
    if (dir->norm == RLHF_TAP_NORM_LAYER) {
        for (int32_t i = 0; i < d; i++)
            mean += (double)x[i];
        mean /= d;
    }
    for (int32_t i = 0; i < d; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean);
    return (struct norm){mean, sqrt(square / d + dir->eps)};
}

// Sets `g` to the direction of those hidden units that are active at x, i.e. above 0 before ReLU.
// Returns the bias of this direction.
static double through_relu(const struct rlhf__direction *dir, const float *x, struct norm s,
                           double *g) {
    const size_t d = (size_t)dir->d;
    double bias = dir->b;
    for (size_t i = 0; i < d; i++)
        dir->normed[i] =
            ((double)x[i] - s.mean) / s.scale * (double)dir->gain[i] + (double)dir->norm_bias[i];
    memset(g, 0, d * sizeof *g);
    for (size_t j = 0; j < (size_t)dir->n_hidden; j++) {
        const float *w = dir->hidden + j * d;
        if (rlhf__dot(w, dir->normed, d) + (double)dir->hidden_bias[j] <= 0) continue;
        for (size_t i = 0; i < d; i++)
            g[i] += (double)dir->outer[j] * (double)w[i];
        bias += (double)dir->outer[j] * (double)dir->hidden_bias[j];
    }
    return bias;
}

void rlhf__direction_at(const struct rlhf__direction *dir, const float *x, double *g,
                        double *constant) {
    const struct norm s = norm_of(dir, x);
    const int32_t d = dir->d;
    double mean = 0;
    *constant = dir->b;
    if (dir->hidden)
        *constant = through_relu(dir, x, s, g);
    else
        memcpy(g, dir->u, (size_t)d * sizeof *g);
    for (int32_t i = 0; i < d; i++) {
        *constant += (double)dir->norm_bias[i] * g[i];
        g[i] *= (double)dir->gain[i] / s.scale;
        mean += g[i];
    }
    mean /= d;
    for (int32_t i = 0; dir->norm == RLHF_TAP_NORM_LAYER && i < d; i++)
        g[i] -= mean;
}

double rlhf__direction_value_at(const struct rlhf__direction *dir, const float *x, double *g) {
    double constant;
    rlhf__direction_at(dir, x, g, &constant);
    return rlhf__dot(x, g, (uint64_t)dir->d) + constant;
}
