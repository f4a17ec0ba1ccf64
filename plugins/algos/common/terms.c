// terms.c: see terms.h.
#include "common/terms.h"

#include <math.h>
#include <rlhf/log.h>

rlhf_status rlhf__kl_of_token(const rlhf_host *host, int32_t kind, const rlhf_rollout *in,
                              int64_t i, int64_t t, double *kl) {
    double x = (double)in->logp_old[t], f = (double)in->logp_ref[t];
    *kl = rlhf__kl(kind, x, f);
    if (isfinite(*kl)) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_NUMERIC,
                      "the KL of token %lld of sequence %lld is not finite (log-prob %g, reference "
                      "%g)",
                      (long long)(t - in->offset[i] - in->prompt_len[i]), (long long)i, x, f);
}

rlhf_status rlhf__penalised_reward(const rlhf_host *host, int32_t kind, double coef,
                                   const rlhf_rollout *in, int64_t i, double *paid) {
    struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
    double penalty = 0, kl;
    for (int64_t t = row.begin; t < row.end; t++) {
        RLHF_TRY(rlhf__kl_of_token(host, kind, in, i, t, &kl));
        penalty += kl;
    }
    *paid = rlhf__row_reward(in, i) - coef * penalty;
    return RLHF_OK;
}

void rlhf__count_row(struct rlhf__pg_rollout_sums *r, int32_t kind, const rlhf_rollout *in,
                     struct rlhf__span row) {
    int measured = in->logp_ref && kind != RLHF__KL_FULL;
    for (int64_t t = row.begin; t < row.end; t++) {
        r->nll -= (double)in->logp_old[t];
        if (!measured) continue;
        double x = (double)in->logp_old[t], f = (double)in->logp_ref[t];
        r->kl += rlhf__kl(RLHF__KL_K1, x, f);
        r->penalty += rlhf__kl(kind, x, f);
    }
    r->sequences++;
    r->tokens += row.end - row.begin;
    if (!measured) return;
    r->kl_sequences++;
    r->kl_tokens += row.end - row.begin;
}

rlhf_status rlhf__count_paid(const rlhf_host *host, struct rlhf__pg_metrics *m, int32_t kind,
                             const rlhf_rollout *in, const double *plain, const double *paid,
                             const double *judged) {
    struct rlhf__pg_rollout_sums *r = &m->rollout;
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        struct rlhf__moments same = {row.end - row.begin, paid[i], 0};
        rlhf__count_row(r, kind, in, row);
        r->returns = rlhf__moments_merge(r->returns, same);
        r->score += plain[i];
    }
    return rlhf__pg_take_rows(host, m, in, plain, judged, 0);
}

void rlhf__spread(const rlhf_rollout *in, const double *advantage, const double *returns,
                  rlhf_advantages *out) {
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        for (int64_t t = row.begin; t < row.end; t++) {
            out->advantage[t] = (float)advantage[i];
            out->returns[t] = (float)returns[i];
        }
    }
}

static void exact_kl_term(double beta, const rlhf_loss_in *in, struct rlhf__span row, double w,
                          const rlhf_head_gradients *d, struct rlhf__pg_update_sums *u,
                          struct rlhf__pg_rollout_sums *r) {
    for (int64_t t = row.begin; t < row.end; t++) {
        double kl = (double)in->heads->kl[t];
        u->kl_loss += w * beta * kl;
        d->kl[t] += (float)(w * beta);
        if (in->epoch != 0) continue; // count only in the first epoch, which sees every token once
        r->kl += kl;
        r->penalty += kl;
        r->kl_tokens++;
    }
}

rlhf_status rlhf__kl_term(const rlhf_host *host, int32_t kind, double beta, const rlhf_loss_in *in,
                          struct rlhf__span row, double w, const rlhf_head_gradients *d,
                          struct rlhf__pg_update_sums *u, struct rlhf__pg_rollout_sums *r) {
    if (kind == RLHF__KL_FULL) {
        exact_kl_term(beta, in, row, w, d, u, r);
        return RLHF_OK;
    }
    for (int64_t t = row.begin; t < row.end; t++) {
        double x = (double)in->heads->logp[t], f = (double)in->logp_ref[t];
        if (!isfinite(x)) continue; // outside of the sampled support, there is no gradient
        if (!isfinite(f))
            return rlhf_failf(host, RLHF_E_NUMERIC, "the reference log-prob of token %lld is %g",
                              (long long)t, f);
        if (beta == 0) continue; // because an overflowed value times 0 would be NaN
        u->kl_loss += w * beta * rlhf__kl(kind, x, f);
        d->logp[t] += (float)(w * beta * rlhf__kl_dx(kind, x, f));
    }
    return RLHF_OK;
}

void rlhf__entropy_term(double coef, const rlhf_loss_in *in, struct rlhf__span row, double w,
                        const rlhf_head_gradients *d, struct rlhf__pg_update_sums *u) {
    double sum = 0;
    for (int64_t t = row.begin; t < row.end; t++)
        sum += (double)in->heads->entropy[t];
    u->entropy += sum;
    if (coef == 0) return;
    u->entropy_loss -= w * coef * sum;
    for (int64_t t = row.begin; t < row.end; t++)
        d->entropy[t] += (float)(-w * coef);
}
