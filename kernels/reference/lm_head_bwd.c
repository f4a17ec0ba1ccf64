// lm_head_bwd.c: derivative of lm_head with respect to hidden states and weight.
//
// With z = logits * inv_temperature, p = softmax of z on the kept set (treated as constant), H the
// entropy and K the kl, for v in the kept set and target y:
//   d logp / dz_v = [v = y] - p_v          (zero when y is not in the kept set)
//   d H / dz_v    = -p_v (log p_v + H)
//   d K / dz_v    = p_v (log p_v - log q_v - K)      (the reference model is constant)
// For the forward divergence d K / dz_v = p_v - q_v; for Jensen-Shannon, with m = beta q + (1 -
// beta) p, it is (1 - beta) p_v (log(p_v / m_v) - sum p log(p / m)). The derivative by the product
// of hidden state and weight has one more factor, logit_scale (1 - tanh^2).
#include "lm_head.h"
#include "number.h"
#include "ops.h"
#include "weight.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double element(rlhf_dev p, uint64_t t) { return p ? (double)rlhf__ref_f32(p)[t] : 0.0; }

// d K / dz_v of the divergence that `a` selects. `whole` is the kl or, for the Jensen-Shannon
// divergence, sum p log(p/m).
static double kl_slope(const struct rlhf__ref_head_row *s, const rlhf_lm_head *a, int32_t v,
                       double whole) {
    const double p = exp(s->logp[v]), beta = a->divergence_beta;
    if (a->divergence == RLHF_DIVERGENCE_FORWARD) return p - exp(s->ref[v]);
    if (a->divergence == RLHF_DIVERGENCE_JS)
        return (1.0 - beta) * p * (rlhf__ref_log_p_over_m(s, v, beta) - whole);
    return p * (s->logp[v] - s->ref[v] - whole);
}

// g[vocab] = the derivative of the loss by the products of row t with the matrix. It is an input of
// the two products that follow, so it has their dtype.
static void logit_grad(double *g, const struct rlhf__ref_head_row *s, const rlhf_lm_head *a,
                       uint64_t t) {
    const int32_t y = rlhf__ref_i32(a->target)[t];
    const double d_logp = s->logp[y] == -INFINITY ? 0.0 : element(a->d_logp, t);
    const double d_entropy = element(a->d_entropy, t), d_kl = element(a->d_kl, t);
    const double entropy = a->d_entropy ? rlhf__ref_entropy(s, a->vocab) : 0.0;
    const double whole = !a->d_kl ? 0.0
                         : a->divergence == RLHF_DIVERGENCE_JS
                             ? rlhf__ref_kl_to_m(s, a->vocab, a->divergence_beta)
                             : rlhf__ref_kl(s, a->vocab);
    for (int32_t v = 0; v < a->vocab; v++) {
        g[v] = 0.0;
        if (s->logp[v] == -INFINITY) continue;
        const double p = exp(s->logp[v]);
        g[v] += d_logp * ((v == y ? 1.0 : 0.0) - p);
        if (a->d_entropy) g[v] -= d_entropy * p * (s->logp[v] + entropy);
        if (a->d_kl) g[v] += d_kl * kl_slope(s, a, v, whole);
        g[v] *= rlhf__ref_dist_scale(a->dist) * s->slope[v];
        if (a->dtype == RLHF_BF16)
            g[v] = (double)rlhf__ref_from_bf16(rlhf__ref_to_bf16((float)g[v]));
    }
}

static void hidden_grad(const rlhf_lm_head *a, const double *g, uint64_t t) {
    const uint64_t d = (uint64_t)a->d, vocab = (uint64_t)a->vocab;
    for (uint64_t i = 0; i < d; i++) {
        double acc = 0.0;
        for (uint64_t v = 0; v < vocab; v++)
            acc += g[v] * (double)a->weight->w[i * vocab + v];
        rlhf__ref_put(a->d_hidden, a->dtype, t * d + i, acc);
    }
}

// sum[d, vocab] += the hidden state of row t times g.
static void weight_grad_add(double *sum, const rlhf_lm_head *a, const double *g, uint64_t t) {
    const uint64_t d = (uint64_t)a->d, vocab = (uint64_t)a->vocab;
    for (uint64_t i = 0; i < d; i++) {
        const double x = rlhf__ref_get(a->hidden, a->dtype, t * d + i);
        for (uint64_t v = 0; v < vocab; v++)
            sum[i * vocab + v] += x * g[v];
    }
}

static void weight_grad_store(const rlhf_lm_head *a, const double *sum) {
    const uint64_t d = (uint64_t)a->d, vocab = (uint64_t)a->vocab;
    float *out = rlhf__ref_f32(a->d_weight);
    for (uint64_t i = 0; i < d; i++) {
        for (uint64_t v = 0; v < vocab; v++) {
            const uint64_t at = a->weight->flags & RLHF_WEIGHT_OUT_IN ? v * d + i : i * vocab + v;
            out[at] = (float)((double)out[at] + sum[i * vocab + v]);
        }
    }
}

static void all_rows(const rlhf_lm_head *a, struct rlhf__ref_head_row *s, double *g, double *sum) {
    for (uint64_t t = 0; t < a->rows; t++) {
        rlhf__ref_head_row_fill(s, a, t, a->d_kl != NULL);
        logit_grad(g, s, a, t);
        if (a->d_hidden) hidden_grad(a, g, t);
        if (a->d_weight) weight_grad_add(sum, a, g, t);
    }
    if (a->d_weight) weight_grad_store(a, sum);
}

static rlhf_status lm_head_bwd(void *ctx, const rlhf_lm_head *from) {
    rlhf_lm_head a;
    rlhf_dist dist;
    struct rlhf__ref_head_row s;
    RLHF_TRY(rlhf__ref_head_read(ctx, "lm_head_bwd", &a, &dist, from, 1));
    if (a.d_weight) RLHF_TRY(rlhf__ref_check_dense(ctx, "lm_head_bwd", a.weight));
    const uint64_t d = (uint64_t)a.d, vocab = (uint64_t)a.vocab;
    const uint64_t hidden = a.rows * d * rlhf_dtype_size(a.dtype);
    const uint64_t ref = a.rows * (uint64_t)a.ref_d * rlhf_dtype_size(a.dtype);
    const uint64_t weights = a.d_weight ? d * vocab : 0;
    const struct rlhf__ref_use uses[] = {{a.hidden, hidden},
                                         rlhf__ref_range(a.target, a.rows, sizeof(int32_t)),
                                         {a.d_kl ? a.ref_hidden : NULL, a.d_kl ? ref : 0},
                                         rlhf__ref_optional(a.d_logp, a.rows, sizeof(float)),
                                         rlhf__ref_optional(a.d_entropy, a.rows, sizeof(float)),
                                         rlhf__ref_optional(a.d_kl, a.rows, sizeof(float)),
                                         {a.d_hidden, a.d_hidden ? hidden : 0},
                                         {a.d_weight, weights * sizeof(float)},
                                         rlhf__ref_head_support(&a)};
    double *scratch; // derivatives of one row of logits, then derivatives of the weight
    RLHF_TRY(rlhf__ref_scratch(ctx, vocab + weights, sizeof *scratch, &scratch));
    memset(scratch, 0, (vocab + weights) * sizeof *scratch);
    rlhf_status st = rlhf__ref_head_row_init(ctx, &s, &a);
    if (st == RLHF_OK) {
        st = rlhf__ref_enter(ctx, "lm_head_bwd", uses, RLHF__REF_COUNT(uses));
        if (st == RLHF_OK) st = rlhf__ref_head_check_targets(ctx, &a);
        if (st == RLHF_OK) all_rows(&a, &s, scratch, scratch + vocab);
        rlhf__ref_head_row_finish(&s);
        rlhf__ref_leave(ctx, st);
    }
    free(scratch);
    return st;
}

void rlhf__ref_fill_lm_head_bwd(rlhf_compute *t) { t->lm_head_bwd = lm_head_bwd; }
