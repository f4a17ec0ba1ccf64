// lm_sample.c: samples the next token of each row by the inverse CDF, in the order of the
// vocabulary.
#include "dist.h"
#include "number.h"
#include "ops.h"
#include <math.h>
#include <rlhf/rng.h>
#include <stdlib.h>

struct sampler {
    double *logits, *logp; // [vocab] each
    struct rlhf__ref_ranked *ranked;
    struct rlhf__ref_map map;
};

static int32_t arg_max(const double *x, int32_t n) {
    int32_t best = 0;
    for (int32_t v = 1; v < n; v++)
        if (x[v] > x[best]) best = v;
    return best;
}

// Returns the first id at which the CDF exceeds u, which is in [0, 1). An id of probability 0 is
// never sampled.
static int32_t draw(const double *logp, int32_t vocab, double u) {
    double total = 0.0, reached = 0.0;
    int32_t last = 0;
    for (int32_t v = 0; v < vocab; v++)
        total += exp(logp[v]);
    for (int32_t v = 0; v < vocab; v++) {
        const double p = exp(logp[v]);
        if (p == 0.0) continue;
        reached += p;
        last = v;
        if (reached > u * total) return v;
    }
    return last;
}

static void set_log_probs(const struct sampler *s, int32_t vocab, const rlhf_dist *d) {
    for (int32_t v = 0; v < vocab; v++)
        s->logp[v] = s->logits[v];
    rlhf__ref_log_probs(s->logp, s->ranked, vocab, d);
}

static rlhf_status sample_row(struct rlhf__ref *r, const struct sampler *s, const rlhf_lm_sample *a,
                              uint32_t t) {
    rlhf__ref_logits(s->logits, a->hidden, a->weight, t, s->map);
    for (int32_t v = 0; v < a->vocab; v++)
        if (!isfinite(s->logits[v]))
            return rlhf__ref_fail(r, RLHF_E_NUMERIC, "logit %d of row %u is not finite", v, t);
    uint32_t *bits = a->host_support;
    if (bits) bits += t * (uint64_t)rlhf_support_words(a->vocab);
    if (a->dist->greedy) {
        a->host_id[t] = arg_max(s->logits, a->vocab);
        for (int32_t v = 0; v < a->vocab; v++)
            s->logp[v] = v == a->host_id[t] ? 0.0 : -INFINITY;
    } else {
        const rlhf_rng at = {a->seed, a->stream, a->host_counter[t]};
        uint32_t word[4];
        rlhf_rng_block(&at, word);
        set_log_probs(s, a->vocab, a->dist);
        a->host_id[t] = draw(s->logp, a->vocab, rlhf_rng_f64(word[0], word[1]));
    }
    if (bits) {
        rlhf__ref_support_store(bits, s->logp, a->vocab);
        rlhf__ref_support_apply(s->logits, bits, a->vocab);
    }
    set_log_probs(s, a->vocab, a->logp_dist);
    a->host_logp[t] = (float)s->logp[a->host_id[t]];
    return RLHF_OK;
}

static rlhf_status read_sample(struct rlhf__ref *r, rlhf_lm_sample *a, rlhf_dist *dist,
                               rlhf_dist *logp_dist, const rlhf_lm_sample *from) {
    RLHF_TRY(rlhf__ref_copy_in(r, "lm_sample", a, sizeof *a, from,
                               RLHF_SIZE_TO(rlhf_lm_sample, host_logp)));
    RLHF_TRY(rlhf__ref_dist_read(r, dist, a->dist));
    RLHF_TRY(rlhf__ref_dist_read(r, logp_dist, a->logp_dist));
    a->dist = dist;
    a->logp_dist = logp_dist;
    if (a->id) {
        if (!a->counter || !a->logp)
            return rlhf__ref_fail(r, RLHF_E_INVALID,
                                  "%s is NULL; with id set, counter and logp are too",
                                  a->counter ? "logp" : "counter");
        a->host_counter = rlhf__ref_mem(a->counter);
        a->host_id = rlhf__ref_mem(a->id);
        a->host_logp = rlhf__ref_mem(a->logp);
        a->host_support = rlhf__ref_mem(a->support);
    }
    if (a->host_support && rlhf__ref_dist_cuts(a->logp_dist, a->vocab))
        return rlhf__ref_fail(
            r, RLHF_E_INVALID,
            "logp_dist's top_k, top_p and min_p must be off when the support is requested");
    RLHF_TRY(rlhf__ref_check_weight(r, "lm_sample", a->weight, 0));
    if (a->weight->k != a->d || a->weight->n != a->vocab || a->weight->dtype != a->dtype)
        return rlhf__ref_fail(
            r, RLHF_E_INVALID, "weight is %d x %d dtype %d, the call says %d x %d dtype %d",
            a->weight->k, a->weight->n, a->weight->dtype, a->d, a->vocab, a->dtype);
    return RLHF_OK;
}

static rlhf_status lm_sample(void *ctx, const rlhf_lm_sample *from) {
    rlhf_lm_sample a;
    rlhf_dist dist, logp_dist;
    RLHF_TRY(read_sample(ctx, &a, &dist, &logp_dist, from));
    const uint64_t vocab = (uint64_t)a.vocab;
    const struct rlhf__ref_use uses[] = {
        rlhf__ref_range(a.hidden, a.rows * (uint64_t)a.d, rlhf_dtype_size(a.dtype)),
        rlhf__ref_optional(a.id, a.rows, sizeof *a.host_id),
        rlhf__ref_optional(a.id ? a.counter : NULL, a.rows, sizeof *a.host_counter),
        rlhf__ref_optional(a.id ? a.logp : NULL, a.rows, sizeof *a.host_logp),
        rlhf__ref_optional(a.id ? a.support : NULL, a.rows * (uint64_t)rlhf_support_words(a.vocab),
                           sizeof *a.host_support)};
    struct sampler s = {.logits = NULL};
    RLHF_TRY(rlhf__ref_map_read(ctx, &s.map, a.logit_scale, a.softcap));
    RLHF_TRY(rlhf__ref_scratch(ctx, 2 * vocab, sizeof(double), &s.logits));
    s.logp = s.logits + vocab;
    rlhf_status st = rlhf__ref_scratch(ctx, vocab, sizeof *s.ranked, &s.ranked);
    if (st == RLHF_OK) st = rlhf__ref_enter(ctx, "lm_sample", uses, RLHF__REF_COUNT(uses));
    for (uint32_t t = 0; st == RLHF_OK && t < a.rows; t++)
        st = sample_row(ctx, &s, &a, t);
    free(s.ranked);
    free(s.logits);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_lm_sample(rlhf_compute *t) { t->lm_sample = lm_sample; }
