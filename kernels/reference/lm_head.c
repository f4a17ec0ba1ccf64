// lm_head.c: the log-prob of the target, the entropy, and the KL to a reference model, computed
// from hidden states.
//
// kl = sum_v p_v (log p_v - log q_v), or another divergence of p and q. If top-k, top-p or min-p
// drops ids, both p and q are renormalized over the ids that p keeps, so that equal models give 0.
#include "lm_head.h"
#include "number.h"
#include "ops.h"
#include <math.h>
#include <stdlib.h>

static rlhf_status check_head_weight(struct rlhf__ref *r, const char *op, const char *what,
                                     const rlhf_lm_head *a, int32_t d, const rlhf_weight *w,
                                     uint32_t flags) {
    RLHF_TRY(rlhf__ref_check_weight(r, op, w, flags));
    if (w->k == d && w->n == a->vocab && w->dtype == a->dtype) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID,
                          "%s is %d x %d dtype %d, the call says %d x %d dtype %d", what, w->k,
                          w->n, w->dtype, d, a->vocab, a->dtype);
}

static rlhf_status check_divergence(struct rlhf__ref *r, const rlhf_lm_head *a) {
    const double beta = a->divergence_beta;
    if (a->divergence < RLHF_DIVERGENCE_REVERSE || a->divergence > RLHF_DIVERGENCE_JS)
        return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "divergence %d, known are 0 to %d",
                              a->divergence, RLHF_DIVERGENCE_JS);
    if (a->divergence == RLHF_DIVERGENCE_JS && !(beta > 0 && beta < 1))
        return rlhf__ref_fail(r, RLHF_E_INVALID, "divergence_beta is %g, must be in (0, 1)", beta);
    if (a->ref_d < 0)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "ref_d is %d, must not be negative", a->ref_d);
    return RLHF_OK;
}

static const uint32_t *support_of(const rlhf_lm_head *a, uint64_t t) {
    return (const uint32_t *)rlhf__ref_mem(a->support) + t * rlhf_support_words(a->vocab);
}

rlhf_status rlhf__ref_head_read(struct rlhf__ref *r, const char *op, rlhf_lm_head *a,
                                rlhf_dist *dist, const rlhf_lm_head *from, int backward) {
    RLHF_TRY(rlhf__ref_copy_in(r, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_lm_head, d_weight)));
    RLHF_TRY(rlhf__ref_dist_read(r, dist, a->dist));
    a->dist = dist;
    const int with_kl = backward ? a->d_kl != NULL : a->kl != NULL;
    const uint32_t flags = backward && a->d_hidden ? RLHF_WEIGHT_BACKWARD : 0;
    RLHF_TRY(check_divergence(r, a));
    if (!a->ref_d) a->ref_d = a->d;
    RLHF_TRY(check_head_weight(r, op, "weight", a, a->d, a->weight, flags));
    if (with_kl) RLHF_TRY(check_head_weight(r, op, "ref_weight", a, a->ref_d, a->ref_weight, 0));
    if (a->support && rlhf__ref_dist_cuts(a->dist, a->vocab))
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "top_k, top_p and min_p must be off where rows have a support");
    return RLHF_OK;
}

rlhf_status rlhf__ref_head_check_targets(struct rlhf__ref *r, const rlhf_lm_head *a) {
    for (uint32_t t = 0; t < a->rows; t++) {
        const int32_t id = rlhf__ref_i32(a->target)[t];
        if (id < 0 || id >= a->vocab)
            return rlhf__ref_fail(r, RLHF_E_INVALID, "target[%u] = %d, vocabulary %d", t, id,
                                  a->vocab);
        if (a->support && !(support_of(a, t)[id / 32] >> id % 32 & 1))
            return rlhf__ref_fail(r, RLHF_E_INVALID, "target[%u] is %d, outside its support", t,
                                  id);
    }
    return RLHF_OK;
}

rlhf_status rlhf__ref_head_row_init(struct rlhf__ref *r, struct rlhf__ref_head_row *s,
                                    const rlhf_lm_head *a) {
    const uint64_t v = (uint64_t)a->vocab;
    *s = (struct rlhf__ref_head_row){.logp = NULL};
    RLHF_TRY(rlhf__ref_map_read(r, &s->map, a->logit_scale, a->softcap));
    RLHF_TRY(rlhf__ref_map_read(r, &s->ref_map, a->ref_logit_scale, a->ref_softcap));
    RLHF_TRY(rlhf__ref_scratch(r, 3 * v, sizeof(double), &s->logp));
    s->ref = s->logp + v;
    s->slope = s->ref + v;
    rlhf_status st = rlhf__ref_scratch(r, v, sizeof *s->ranked, &s->ranked);
    if (st < 0) rlhf__ref_head_row_finish(s);
    return st;
}

void rlhf__ref_head_row_finish(struct rlhf__ref_head_row *s) {
    free(s->logp);
    free(s->ranked);
    *s = (struct rlhf__ref_head_row){.logp = NULL};
}

void rlhf__ref_head_row_fill(struct rlhf__ref_head_row *s, const rlhf_lm_head *a, uint64_t t,
                             int with_ref) {
    rlhf__ref_logits(s->logp, a->hidden, a->weight, t, s->map);
    for (int32_t v = 0; v < a->vocab; v++) {
        const double tanh_v = s->map.cap > 0.0 ? s->logp[v] / s->map.cap : 0.0;
        s->slope[v] = s->map.scale * (1.0 - tanh_v * tanh_v);
    }
    if (a->support) rlhf__ref_support_apply(s->logp, support_of(a, t), a->vocab);
    rlhf__ref_log_probs(s->logp, s->ranked, a->vocab, a->dist);
    if (!with_ref) return;
    rlhf__ref_logits(s->ref, a->ref_hidden, a->ref_weight, t, s->ref_map);
    rlhf__ref_log_probs_on(s->ref, s->logp, a->vocab, a->dist);
}

double rlhf__ref_entropy(const struct rlhf__ref_head_row *s, int32_t vocab) {
    double sum = 0.0;
    for (int32_t v = 0; v < vocab; v++)
        if (s->logp[v] != -INFINITY) sum -= exp(s->logp[v]) * s->logp[v];
    return sum;
}

double rlhf__ref_kl(const struct rlhf__ref_head_row *s, int32_t vocab) {
    double sum = 0.0;
    for (int32_t v = 0; v < vocab; v++)
        if (s->logp[v] != -INFINITY) sum += exp(s->logp[v]) * (s->logp[v] - s->ref[v]);
    return sum;
}

double rlhf__ref_log_p_over_m(const struct rlhf__ref_head_row *s, int32_t v, double beta) {
    const double p = s->logp[v] + log(1.0 - beta), q = s->ref[v] + log(beta);
    return s->logp[v] - fmax(p, q) - log1p(exp(-fabs(p - q)));
}

double rlhf__ref_kl_to_m(const struct rlhf__ref_head_row *s, int32_t vocab, double beta) {
    double sum = 0.0;
    for (int32_t v = 0; v < vocab; v++)
        if (s->logp[v] != -INFINITY) sum += exp(s->logp[v]) * rlhf__ref_log_p_over_m(s, v, beta);
    return sum;
}

double rlhf__ref_divergence(const struct rlhf__ref_head_row *s, const rlhf_lm_head *a) {
    const double beta = a->divergence_beta;
    double sum = 0.0;
    if (a->divergence == RLHF_DIVERGENCE_REVERSE) return rlhf__ref_kl(s, a->vocab);
    for (int32_t v = 0; v < a->vocab; v++) {
        if (s->logp[v] == -INFINITY || s->ref[v] == -INFINITY) continue;
        const double log_ratio = s->ref[v] - s->logp[v];
        if (a->divergence == RLHF_DIVERGENCE_FORWARD)
            sum += exp(s->ref[v]) * log_ratio;
        else // log(q/m) = log(q/p) + log(p/m)
            sum += beta * exp(s->ref[v]) * (log_ratio + rlhf__ref_log_p_over_m(s, v, beta));
    }
    return a->divergence == RLHF_DIVERGENCE_FORWARD
               ? sum
               : sum + (1.0 - beta) * rlhf__ref_kl_to_m(s, a->vocab, beta);
}

struct rlhf__ref_use rlhf__ref_head_support(const rlhf_lm_head *a) {
    return rlhf__ref_optional(a->support, (uint64_t)a->rows * rlhf_support_words(a->vocab),
                              sizeof(uint32_t));
}

static rlhf_status lm_head(void *ctx, const rlhf_lm_head *from) {
    rlhf_lm_head a;
    rlhf_dist dist;
    struct rlhf__ref_head_row s;
    RLHF_TRY(rlhf__ref_head_read(ctx, "lm_head", &a, &dist, from, 0));
    const uint64_t hidden = (uint64_t)a.rows * (uint64_t)a.d * rlhf_dtype_size(a.dtype);
    const uint64_t ref = (uint64_t)a.rows * (uint64_t)a.ref_d * rlhf_dtype_size(a.dtype);
    const struct rlhf__ref_use uses[] = {{a.hidden, hidden},
                                         rlhf__ref_range(a.target, a.rows, sizeof(int32_t)),
                                         rlhf__ref_range(a.logp, a.rows, sizeof(float)),
                                         rlhf__ref_optional(a.entropy, a.rows, sizeof(float)),
                                         rlhf__ref_optional(a.kl, a.rows, sizeof(float)),
                                         {a.kl ? a.ref_hidden : NULL, a.kl ? ref : 0},
                                         rlhf__ref_head_support(&a)};
    RLHF_TRY(rlhf__ref_head_row_init(ctx, &s, &a));
    rlhf_status st = rlhf__ref_enter(ctx, "lm_head", uses, RLHF__REF_COUNT(uses));
    if (st == RLHF_OK) st = rlhf__ref_head_check_targets(ctx, &a);
    for (uint64_t t = 0; st == RLHF_OK && t < a.rows; t++) {
        rlhf__ref_head_row_fill(&s, &a, t, a.kl != NULL);
        const int32_t target = rlhf__ref_i32(a.target)[t];
        const double y = s.logp[target]; // moves by up to 2^-22 of its size
        rlhf__ref_f32(a.logp)[t] =
            (float)(isfinite(y) ? rlhf__ref_disturbed(ctx, y, (float)y / 4, (uint64_t)target) : y);
        if (a.entropy) rlhf__ref_f32(a.entropy)[t] = (float)rlhf__ref_entropy(&s, a.vocab);
        if (a.kl) rlhf__ref_f32(a.kl)[t] = (float)rlhf__ref_divergence(&s, &a);
    }
    rlhf__ref_head_row_finish(&s);
    return rlhf__ref_leave(ctx, st);
}

void rlhf__ref_fill_lm_head(rlhf_compute *t) { t->lm_head = lm_head; }
