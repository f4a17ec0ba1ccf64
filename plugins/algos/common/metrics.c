// metrics.c: see metrics.h.
#include "common/metrics.h"

#include <math.h>
#include <string.h>

double rlhf__pg_total_loss(const struct rlhf__pg_update_sums *u) {
    return u->pg.loss + u->value_loss + u->kl_loss + u->entropy_loss;
}

double rlhf__pg_approx_kl(const struct rlhf__pg_update_sums *u) {
    int64_t n = u->pg.tokens - u->pg.out_of_support;
    return n > 0 ? u->pg.approx_kl / (double)n : 0;
}

void rlhf__pg_add(struct rlhf__pg_update_sums *to, const struct rlhf__pg_update_sums *from) {
    to->pg.loss += from->pg.loss;
    to->pg.ratio += from->pg.ratio;
    to->pg.ratio2 += from->pg.ratio2;
    to->pg.approx_kl += from->pg.approx_kl;
    to->pg.tokens += from->pg.tokens;
    to->pg.clipped += from->pg.clipped;
    to->pg.out_of_support += from->pg.out_of_support;
    to->value_loss += from->value_loss;
    to->value_half += from->value_half;
    to->kl_loss += from->kl_loss;
    to->entropy_loss += from->entropy_loss;
    to->entropy += from->entropy;
    to->value += from->value;
    to->value_error += from->value_error;
    to->value_clipped += from->value_clipped;
    to->rows += from->rows;
}

void rlhf__pg_fold(struct rlhf__pg_metrics *m) {
    double total = rlhf__pg_total_loss(&m->minibatch);
    if (m->minibatch.rows > 0 && isfinite(total)) {
        if (m->minibatch_epoch != m->last_epoch) {
            m->last_epoch = m->minibatch_epoch;
            m->last_epoch_loss = 0;
            m->last_epoch_count = 0;
        }
        m->last_epoch_loss += total;
        m->last_epoch_count++;
        m->minibatches++;
        rlhf__pg_add(&m->phase, &m->minibatch);
    }
    memset(&m->minibatch, 0, sizeof m->minibatch);
}

static void report_rollout(const rlhf_host *h, const struct rlhf__pg_rollout_sums *r,
                           const struct rlhf__pg_report *how) {
    double n = (double)r->sequences;
    if (r->sequences == 0) return;
    h->metric(h, "objective/entropy", r->nll / n);
    h->metric(h, "reward_std",
              r->groups.groups ? r->groups.std_sum / (double)r->groups.groups
                               : sqrt(rlhf__var_unbiased(r->scores)));
    if (r->groups.groups)
        h->metric(h, "frac_reward_zero_std", (double)r->groups.zero / (double)r->groups.groups);
    if (r->kl_sequences) {
        h->metric(h, "objective/kl", r->kl / (double)r->kl_sequences);
        if (r->kl_tokens) h->metric(h, "objective/kl_per_token", r->kl / (double)r->kl_tokens);
    }
    double non_score = 0;
    if (how->kl_penalised) {
        h->metric(h, "objective/kl_coef", how->kl_coef);
        if (r->kl_sequences) non_score = -how->kl_coef * r->penalty / (double)r->kl_sequences;
        h->metric(h, "objective/non_score_reward", non_score);
    }
    h->metric(h, "objective/rlhf_reward", r->score / n + non_score);
    if (r->tokens == 0) return;
    h->metric(h, "returns/mean", r->returns.mean);
    h->metric(h, "returns/var", rlhf__var_biased(r->returns));
    if (!how->critic) return;
    h->metric(h, "val/mean", r->values.mean);
    h->metric(h, "val/var", rlhf__var_biased(r->values));
}

static void report_value(const rlhf_host *h, const struct rlhf__pg_metrics *m) {
    const struct rlhf__pg_update_sums *u = &m->phase;
    double tokens = (double)u->pg.tokens, error = u->value_error / tokens;
    double var = rlhf__var_biased(m->rollout.returns);
    h->metric(h, "loss/value_avg", u->value_half / (double)m->minibatches);
    h->metric(h, "val/vpred", u->value / tokens);
    h->metric(h, "val/error", error);
    h->metric(h, "val/clipfrac", (double)u->value_clipped / tokens);
    if (var > 0) h->metric(h, "val/var_explained", 1.0 - error / var);
}

static void report_update(const rlhf_host *h, const struct rlhf__pg_metrics *m,
                          const struct rlhf__pg_report *how) {
    const struct rlhf__pg_update_sums *u = &m->phase;
    if (m->minibatches == 0) return;
    h->metric(h, "loss/policy_avg", u->pg.loss / (double)m->minibatches);
    h->metric(h, "loss/total", rlhf__pg_total_loss(u) / (double)m->minibatches);
    h->metric(h, "objective/loss", m->last_epoch_loss / (double)m->last_epoch_count);
    if (u->pg.tokens == 0) return;
    double tokens = (double)u->pg.tokens, ratio = u->pg.ratio / tokens;
    h->metric(h, "policy/approxkl_avg", rlhf__pg_approx_kl(u));
    h->metric(h, "policy/clipfrac_avg", (double)u->pg.clipped / tokens);
    h->metric(h, "policy/entropy_avg", u->entropy / tokens);
    h->metric(h, "val/ratio", ratio);
    h->metric(h, "val/ratio_var", fmax(u->pg.ratio2 / tokens - ratio * ratio, 0));
    if (how->sampled_support)
        h->metric(h, "policy/out_of_support", (double)u->pg.out_of_support / tokens);
    if (how->critic) report_value(h, m);
}

void rlhf__pg_report(const rlhf_host *h, const struct rlhf__pg_metrics *m,
                     const struct rlhf__pg_report *how) {
    report_rollout(h, &m->rollout, how);
    report_update(h, m, how);
}

void rlhf__pg_metrics_reset(struct rlhf__pg_metrics *m) {
    memset(m, 0, sizeof *m);
    m->last_epoch = -1;
}
