// dist.c: temperature, top-k, top-p and log-softmax of one row. See dist.h.
#include "dist.h"
#include "number.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__ref_dist_read(struct rlhf__ref *r, rlhf_dist *d, const rlhf_dist *from) {
    if (!from) return rlhf__ref_fail(r, RLHF_E_INVALID, "the distribution is NULL");
    RLHF_TRY(rlhf__ref_copy_in(r, r->op, d, sizeof *d, from, RLHF_SIZE_TO(rlhf_dist, top_k)));
    if (!d->greedy && !(d->inv_temperature > 0.0 && isfinite(d->inv_temperature)))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "inv_temperature %g, must be above 0",
                              d->inv_temperature);
    if (!(d->top_p > 0.0 && d->top_p <= 1.0))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "top_p %g, must be in (0, 1]", d->top_p);
    if (!(d->min_p >= 0.0 && d->min_p <= 1.0))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "min_p %g, must be in [0, 1]", d->min_p);
    if (d->top_k < 0)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "top_k %d, must not be negative", d->top_k);
    return RLHF_OK;
}

double rlhf__ref_dist_scale(const rlhf_dist *d) { return d->greedy ? 1.0 : d->inv_temperature; }

rlhf_status rlhf__ref_map_read(struct rlhf__ref *r, struct rlhf__ref_map *m, double scale,
                               double cap) {
    if (!(scale >= 0.0 && isfinite(scale)))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "the logit scale is %g, must be above 0", scale);
    if (!(cap >= 0.0 && isfinite(cap)))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "the softcap is %g, must not be negative", cap);
    *m = (struct rlhf__ref_map){scale == 0.0 ? 1.0 : scale, cap};
    return RLHF_OK;
}

void rlhf__ref_logits(double *logits, rlhf_dev hidden, const rlhf_weight *w, uint64_t row,
                      struct rlhf__ref_map m) {
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    memset(logits, 0, n * sizeof *logits);
    for (uint64_t i = 0; i < k; i++) {
        const double x = rlhf__ref_get(hidden, w->dtype, row * k + i);
        for (uint64_t j = 0; j < n; j++)
            logits[j] += x * (double)w->w[i * n + j];
    }
    for (uint64_t j = 0; j < n; j++) {
        logits[j] *= m.scale;
        if (m.cap > 0.0) logits[j] = m.cap * tanh(logits[j] / m.cap);
    }
}

static int by_rank(const void *a, const void *b) {
    const struct rlhf__ref_ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

// z[v] -= log sum exp z; a value of -inf stays -inf.
static void log_softmax(double *z, int32_t vocab) {
    double max = -INFINITY, sum = 0.0;
    for (int32_t v = 0; v < vocab; v++)
        max = z[v] > max ? z[v] : max;
    for (int32_t v = 0; v < vocab; v++)
        sum += exp(z[v] - max);
    const double lse = max + log(sum);
    for (int32_t v = 0; v < vocab; v++)
        z[v] -= lse;
}

// Returns how many tokens remain after top-k and then top-p. They are the first ones of the
// ranking.
static int32_t top_count(const struct rlhf__ref_ranked *ranked, int32_t vocab, const rlhf_dist *d) {
    int32_t kept = d->top_k > 0 && d->top_k < vocab ? d->top_k : vocab;
    if (d->top_p >= 1.0) return kept;
    double sum = 0.0, reached = 0.0;
    for (int32_t i = 0; i < kept; i++)
        sum += exp(ranked[i].logit - ranked[0].logit);
    for (int32_t i = 0; i < kept; i++) {
        reached += exp(ranked[i].logit - ranked[0].logit);
        if (reached >= d->top_p * sum) return i + 1;
    }
    return kept;
}

// Returns how many tokens remain after top-k, top-p and min-p. They are the first ones of the
// ranking.
static int32_t kept_count(const struct rlhf__ref_ranked *ranked, int32_t vocab,
                          const rlhf_dist *d) {
    int32_t kept = top_count(ranked, vocab, d);
    const double least = log(d->min_p);
    while (d->min_p > 0.0 && kept > 1 && ranked[kept - 1].logit - ranked[0].logit < least)
        kept--;
    return kept;
}

void rlhf__ref_support_store(uint32_t *bits, const double *logp, int32_t vocab) {
    memset(bits, 0, rlhf_support_words(vocab) * sizeof *bits);
    for (int32_t v = 0; v < vocab; v++)
        if (logp[v] != -INFINITY) bits[v / 32] |= 1u << v % 32;
}

void rlhf__ref_support_apply(double *logits, const uint32_t *bits, int32_t vocab) {
    for (int32_t v = 0; v < vocab; v++)
        if (!(bits[v / 32] >> v % 32 & 1)) logits[v] = -INFINITY;
}

int rlhf__ref_dist_cuts(const rlhf_dist *d, int32_t vocab) {
    return d->top_p < 1.0 || d->min_p > 0.0 || (d->top_k > 0 && d->top_k < vocab);
}

void rlhf__ref_log_probs(double *logits, struct rlhf__ref_ranked *ranked, int32_t vocab,
                         const rlhf_dist *d) {
    int is_nan = 0;
    for (int32_t v = 0; v < vocab; v++) {
        logits[v] *= rlhf__ref_dist_scale(d);
        is_nan |= isnan(logits[v]);
        ranked[v] = (struct rlhf__ref_ranked){logits[v], v};
    }
    if (!is_nan && rlhf__ref_dist_cuts(d, vocab)) {
        qsort(ranked, (size_t)vocab, sizeof *ranked, by_rank);
        for (int32_t i = kept_count(ranked, vocab, d); i < vocab; i++)
            logits[ranked[i].id] = -INFINITY;
    }
    log_softmax(logits, vocab);
}

void rlhf__ref_log_probs_on(double *logits, const double *logp, int32_t vocab, const rlhf_dist *d) {
    for (int32_t v = 0; v < vocab; v++)
        logits[v] = logp[v] == -INFINITY ? -INFINITY : logits[v] * rlhf__ref_dist_scale(d);
    log_softmax(logits, vocab);
}
