// surrogate.c: see surrogate.h.
#include "common/surrogate.h"

#include <math.h>
#include <rlhf/exact.h>

double rlhf__token_weight(int32_t aggregation, const struct rlhf__totals *t, int64_t len) {
    double n = t->sequences;
    switch (aggregation) {
    case RLHF__AGG_SEQUENCE:
    case RLHF__AGG_GRPO:
        return 1.0 / (n * (double)len);
    case RLHF__AGG_MAX_LEN:
    case RLHF__AGG_DR_GRPO:
        return 1.0 / (n * (double)t->max_len);
    case RLHF__AGG_SUM:
        return 1.0 / n;
    case RLHF__AGG_DAPO:
        if (t->phase_tokens > 0) return (double)t->minibatches / (double)t->phase_tokens;
        return 1.0 / (double)t->tokens;
    default:
        return 1.0 / (double)t->tokens;
    }
}

double rlhf__surrogate(double ratio, double adv, const struct rlhf__clip *clip, double *d_ratio,
                       int *clipped) {
    double bounded = fmin(fmax(ratio, 1.0 - clip->low), 1.0 + clip->high);
    *d_ratio = 0;
    *clipped = 0;
    if (adv == 0) return 0; // also if the ratio overflowed
    double loss = -adv * ratio;
    *d_ratio = -adv;
    *clipped = -adv * bounded > loss;
    if (*clipped) {
        loss = -adv * bounded;
        *d_ratio = 0;
    }
    if (clip->dual > 0 && adv < 0 && loss > -adv * clip->dual) {
        loss = -adv * clip->dual;
        *d_ratio = 0;
        *clipped = 1;
    }
    return loss;
}

static void note_token(double x, double o, double ratio, int clipped,
                       struct rlhf__surrogate_sums *s) {
    s->tokens++;
    s->clipped += clipped;
    s->ratio += ratio;
    s->ratio2 += ratio * ratio;
    if (isfinite(x)) {
        s->approx_kl += 0.5 * (x - o) * (x - o);
    } else {
        s->out_of_support++;
    }
}

static void token_row(const struct rlhf__clip *clip, double w, const float *logp,
                      const float *logp_old, const float *adv, int64_t len, float *d_logp,
                      struct rlhf__surrogate_sums *s) {
    for (int64_t t = 0; t < len; t++) {
        double x = (double)logp[t], o = (double)logp_old[t], ratio = rlhf_exp(x - o), d;
        int clipped;
        s->loss += w * rlhf__surrogate(ratio, (double)adv[t], clip, &d, &clipped);
        if (d != 0) d_logp[t] += (float)(w * d * ratio);
        note_token(x, o, ratio, clipped, s);
    }
}

// Returns the probability ratio that all tokens of a row share. `level` must not be
// RLHF__RATIO_TOKEN, and len must be positive. Sets *share to the derivative of the ratio's
// logarithm by each logp_t.
static double row_ratio(int32_t level, const float *logp, const float *logp_old, int64_t len,
                        double *share) {
    double log_ratio = 0;
    *share = level == RLHF__RATIO_SEQUENCE ? 1.0 : 1.0 / (double)len;
    for (int64_t t = 0; t < len; t++)
        log_ratio += (double)logp[t] - (double)logp_old[t];
    return rlhf_exp(log_ratio * *share);
}

void rlhf__surrogate_row(int32_t level, const struct rlhf__clip *clip, double w, const float *logp,
                         const float *logp_old, const float *adv, int64_t len, float *d_logp,
                         struct rlhf__surrogate_sums *s) {
    if (len <= 0) return;
    if (level == RLHF__RATIO_TOKEN) {
        token_row(clip, w, logp, logp_old, adv, len, d_logp, s);
        return;
    }
    double share, d_sum = 0, ratio = row_ratio(level, logp, logp_old, len, &share);
    for (int64_t t = 0; t < len; t++) {
        double d;
        int clipped;
        s->loss += w * rlhf__surrogate(ratio, (double)adv[t], clip, &d, &clipped);
        d_sum += w * d;
        note_token((double)logp[t], (double)logp_old[t], ratio, clipped, s);
    }
    for (int64_t t = 0; d_sum != 0 && t < len; t++) // d_sum is 0 even if the ratio overflowed
        d_logp[t] += (float)(d_sum * ratio * share);
}

void rlhf__cispo_row(int32_t level, double high, double w, const float *logp, const float *logp_old,
                     const float *adv, int64_t len, float *d_logp, struct rlhf__surrogate_sums *s) {
    if (len <= 0) return;
    double share, row = 0, bound = 1.0 + high;
    if (level != RLHF__RATIO_TOKEN) row = row_ratio(level, logp, logp_old, len, &share);
    for (int64_t t = 0; t < len; t++) {
        double x = (double)logp[t], o = (double)logp_old[t], a = (double)adv[t];
        double ratio = level == RLHF__RATIO_TOKEN ? rlhf_exp(x - o) : row;
        double weight = w * a * (ratio > bound ? bound : ratio); // not fmin: it would hide a NaN
        note_token(x, o, ratio, a != 0 && ratio > bound, s);
        if (a == 0 || ratio == 0) continue; // if ratio is 0, x may be -inf
        s->loss -= weight * x;
        d_logp[t] -= (float)weight;
    }
}

// Clips d, the log-ratio of a token, but only in the direction that increases the objective for
// advantage a. Returns the result. Sets *clipped to 1 if d was clipped, otherwise to 0.
static double gmpo_log_ratio(const struct rlhf__clip *clip, double d, double a, int *clipped) {
    *clipped = a > 0 ? d > clip->high : d < -clip->low;
    if (!*clipped) return d;
    return a > 0 ? clip->high : -clip->low;
}

void rlhf__gmpo_row(const struct rlhf__clip *clip, double w, const float *logp,
                    const float *logp_old, const float *adv, int64_t len, float *d_logp,
                    struct rlhf__surrogate_sums *s) {
    if (len <= 0) return;
    double a = (double)adv[0], sum = 0;
    int clipped;
    for (int64_t t = 0; t < len; t++)
        sum += gmpo_log_ratio(clip, (double)logp[t] - (double)logp_old[t], a, &clipped);
    double ratio = rlhf_exp(sum / (double)len), slope = -a * w * ratio;
    for (int64_t t = 0; t < len; t++) {
        double x = (double)logp[t], o = (double)logp_old[t];
        gmpo_log_ratio(clip, x - o, a, &clipped);
        note_token(x, o, ratio, clipped && a != 0, s);
        if (a == 0) continue; // also if the ratio overflowed
        s->loss -= w * a * ratio;
        if (!clipped) d_logp[t] += (float)slope;
    }
}

void rlhf__sapo_row(int32_t level, double pos, double neg, double w, const float *logp,
                    const float *logp_old, const float *adv, int64_t len, float *d_logp,
                    struct rlhf__surrogate_sums *s) {
    if (len <= 0) return;
    double share = 1, d_sum = 0, row = 0;
    if (level != RLHF__RATIO_TOKEN) row = row_ratio(level, logp, logp_old, len, &share);
    for (int64_t t = 0; t < len; t++) {
        double x = (double)logp[t], o = (double)logp_old[t], a = (double)adv[t];
        double ratio = level == RLHF__RATIO_TOKEN ? rlhf_exp(x - o) : row, tau = a > 0 ? pos : neg;
        double gate = 1 / (1 + rlhf_exp(-tau * (ratio - 1))), d = -4 * w * a * gate * (1 - gate);
        note_token(x, o, ratio, 0, s);
        if (a == 0) continue;
        s->loss -= w * a * gate * 4 / tau;
        if (d == 0) continue; // also if the ratio overflowed
        if (level == RLHF__RATIO_TOKEN)
            d_logp[t] += (float)(d * ratio);
        else
            d_sum += d;
    }
    for (int64_t t = 0; d_sum != 0 && t < len; t++)
        d_logp[t] += (float)(d_sum * row * share);
}
