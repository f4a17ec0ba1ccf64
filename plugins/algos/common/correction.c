// correction.c: see correction.h. The metrics are defined as in verl (its module
// rollout_corr_helper).
#include "common/correction.h"

#include "common/rows.h"

#include <math.h>
#include <rlhf/exact.h>
#include <rlhf/log.h>

#define BOUND 20.0 // limit of log-ratios

const char *const rlhf__correction_names[] = {"auto", "none", "token", "sequence", NULL};
const char *const rlhf__correction_mode_names[] = {"truncate", "mask", NULL};

static double bounded(double log_ratio) { return fmin(fmax(log_ratio, -BOUND), BOUND); }

double rlhf__correction_weight(const struct rlhf__correction *c, double log_ratio, int32_t *high) {
    const double w = rlhf_exp(bounded(log_ratio));
    *high = c->cap > 0 && w > c->cap;
    if (!*high) return w;
    return c->mode == RLHF__CORRECT_TRUNCATE ? c->cap : 0;
}

// The log-ratio p - b of token t of row i.
static rlhf_status log_ratio(const rlhf_host *h, const rlhf_rollout *in, int64_t i, int64_t t,
                             double *r) {
    const double p = (double)in->logp_old[t], b = (double)in->logp_sampled[t];
    *r = p - b;
    if (isfinite(*r)) return RLHF_OK;
    return rlhf_failf(h, RLHF_E_NUMERIC,
                      "the correction of token %lld of sequence %lld is not finite (log-prob %g, "
                      "when it was sampled %g)",
                      (long long)(t - in->offset[i] - in->prompt_len[i]), (long long)i, p, b);
}

// Adds one token, whose log-ratio is `r`, to the sums. `of` is the log-ratio that determines the
// token's weight: `r` itself or, with SEQUENCE, the sum over the row.
static void count_token(const struct rlhf__correction *c, double of, double r,
                        struct rlhf__correction_sums *s) {
    const double w = rlhf_exp(bounded(of)), ratio = rlhf_exp(bounded(r));
    const double near = c->cap > 0 ? fmin(fmax(w, 1 / c->cap), c->cap) : w;
    s->min = s->tokens ? fmin(s->min, w) : w;
    s->max = s->tokens ? fmax(s->max, w) : w;
    s->weight += w;
    s->near += near;
    s->near2 += near * near;
    s->kl -= r;
    s->k3 += rlhf_expm1(bounded(r)) - bounded(r);
    s->chi2 += ratio * ratio;
    s->tokens++;
}

static void count_row(const struct rlhf__correction *c, const rlhf_rollout *in,
                      struct rlhf__span row, double sum, struct rlhf__correction_sums *s) {
    const int whole = c->level == RLHF__CORRECT_SEQUENCE;
    const double len = (double)(row.end - row.begin);
    double p = 0, b = 0;
    int64_t above = 0;
    int32_t high;
    for (int64_t t = row.begin; t < row.end; t++) {
        const double r = (double)in->logp_old[t] - (double)in->logp_sampled[t];
        rlhf__correction_weight(c, whole ? sum : r, &high);
        count_token(c, whole ? sum : r, r, s);
        above += high;
        p += (double)in->logp_old[t];
        b += (double)in->logp_sampled[t];
    }
    s->units += whole ? 1 : row.end - row.begin;
    s->high += whole ? above > 0 : above;
    if (c->mode == RLHF__CORRECT_MASK) s->masked += above;
    s->training += p / len;
    s->sampling += b / len;
    s->rows++;
}

// Stores the weights of a row. `sum` is the sum of the row's log-ratios. Sets *high to 1 if the row
// has a single weight (SEQUENCE) and this weight is above the cap, otherwise to 0.
static void store_weights(const struct rlhf__correction *c, const rlhf_rollout *in,
                          rlhf_advantages *out, int64_t i, struct rlhf__span row, double sum,
                          int32_t *high) {
    const int whole = c->level == RLHF__CORRECT_SEQUENCE;
    if (whole) out->carry_row[i] = rlhf__correction_weight(c, sum, high);
    for (int64_t t = row.begin; !whole && t < row.end; t++) {
        const double r = (double)in->logp_old[t] - (double)in->logp_sampled[t];
        out->carry_token[t] = rlhf__correction_weight(c, r, high);
    }
    if (!whole) *high = 0;
}

double rlhf__correction_mean(const struct rlhf__correction_weights *w, int64_t i, int64_t begin,
                             int64_t end) {
    double sum = 0;
    if (!w->token) return rlhf__correction_of(w, i, begin);
    for (int64_t t = begin; t < end; t++) {
        if (w->token[t] == 0) return 0;
        sum += rlhf_log(w->token[t]);
    }
    return rlhf_exp(sum / (double)(end - begin));
}

rlhf_status rlhf__correct(const rlhf_host *h, const struct rlhf__correction *c,
                          const rlhf_rollout *in, rlhf_advantages *out, int32_t finished,
                          struct rlhf__correction_sums *s, int64_t *excluded) {
    *excluded = 0;
    const int whole = c->level == RLHF__CORRECT_SEQUENCE;
    if (!in->logp_sampled || !out->use || !(whole ? out->carry_row : out->carry_token))
        return h->fail(h, RLHF_E_INTERNAL, "logp_sampled, use or carry is missing");
    for (int64_t i = 0; i < in->n; i++) {
        const struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        double sum = 0, r;
        int32_t high = 0;
        for (int64_t t = row.begin; t < row.end; t++) {
            RLHF_TRY(log_ratio(h, in, i, t, &r));
            sum += r;
        }
        if (row.end == row.begin) continue;
        if (s) count_row(c, in, row, sum, s);
        store_weights(c, in, out, i, row, sum, &high);
        if (!high || c->mode != RLHF__CORRECT_MASK) continue;
        out->use[i] = RLHF_USE_EXCLUDED;
        if (!finished || in->finished[i]) *excluded += row.end - row.begin;
    }
    return RLHF_OK;
}

void rlhf__correction_report(const rlhf_host *h, const struct rlhf__correction *c,
                             const struct rlhf__correction_sums *s) {
    if (s->tokens == 0) return;
    const double n = (double)s->tokens, rows = (double)s->rows, mean = s->near / n;
    const double square = s->near2 / n;
    rlhf_metric_last(h, "rollout_corr/rollout_is_mean", s->weight / n);
    rlhf_metric_last(h, "rollout_corr/rollout_is_std", sqrt(fmax(square - mean * mean, 0)));
    rlhf_metric_last(h, "rollout_corr/rollout_is_min", s->min);
    rlhf_metric_last(h, "rollout_corr/rollout_is_max", s->max);
    rlhf_metric_last(h, "rollout_corr/rollout_is_eff_sample_size", mean * mean / square);
    if (c->cap > 0)
        rlhf_metric_last(h, "rollout_corr/rollout_is_ratio_fraction_high",
                         (double)s->high / (double)s->units);
    if (c->mode == RLHF__CORRECT_MASK)
        rlhf_metric_last(h, "rollout_corr/rollout_rs_masked_fraction", (double)s->masked / n);
    rlhf_metric_last(h, "rollout_corr/kl", s->kl / n);
    rlhf_metric_last(h, "rollout_corr/k3_kl", s->k3 / n);
    rlhf_metric_last(h, "rollout_corr/chi2_token", s->chi2 / n - 1);
    rlhf_metric_last(h, "rollout_corr/training_log_ppl", -s->training / rows);
    rlhf_metric_last(h, "rollout_corr/rollout_log_ppl", -s->sampling / rows);
    rlhf_metric_last(h, "rollout_corr/log_ppl_diff", (s->sampling - s->training) / rows);
}
