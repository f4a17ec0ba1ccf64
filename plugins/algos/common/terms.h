// terms.h: the KL and entropy terms of a policy-gradient loss, and the KL penalty in the reward.
// The surrogate is in surrogate.h, the coefficient in kl_control.h.
#ifndef RLHF_ALGOS_COMMON_TERMS_H
#define RLHF_ALGOS_COMMON_TERMS_H

#include "common/kl.h"
#include "common/metrics.h"
#include "common/rows.h"

// Estimate `kind` (K1, K2 or K3) of the KL of token t, which is in row i, from the rollout's
// log-probs. RLHF_E_NUMERIC, with a message, if it is not finite. [step]
rlhf_status rlhf__kl_of_token(const rlhf_host *, int32_t kind, const rlhf_rollout *, int64_t i,
                              int64_t t, double *kl);

// *paid = total reward of row i minus coef times the sum of its tokens' KL. [step]
rlhf_status rlhf__penalised_reward(const rlhf_host *, int32_t kind, double coef,
                                   const rlhf_rollout *, int64_t i, double *paid);

// Add row i of a rollout to the statistics: tokens, -logp_old, and the KL if logp_ref is available
// and kind is not FULL. [step]
void rlhf__count_row(struct rlhf__pg_rollout_sums *, int32_t kind, const rlhf_rollout *,
                     struct rlhf__span row);

// The loss term w * beta * KL over the response tokens of one row. Adds the loss to u->kl_loss and
// its gradient to d->logp, or to d->kl if kind is FULL. With FULL, also adds the KL to r, in epoch
// 0 only. Skips tokens outside the sampled support. RLHF_E_NUMERIC if a reference log-prob is not
// finite. [step]
rlhf_status rlhf__kl_term(const rlhf_host *, int32_t kind, double beta, const rlhf_loss_in *,
                          struct rlhf__span row, double w, rlhf_heads *d,
                          struct rlhf__pg_update_sums *u, struct rlhf__pg_rollout_sums *r);

// Adds the n rows of a rollout to the statistics. In each row, all tokens have the same return.
// Counts the tokens (count_row) and records the rewards: plain[n] without the KL penalty, and
// paid[n] with it. paid[n] are the returns. RLHF_E_NOMEM through host->fail. [step]
rlhf_status rlhf__count_paid(const rlhf_host *, struct rlhf__pg_metrics *, int32_t kind,
                             const rlhf_rollout *, const double *plain, const double *paid);

// Copies advantage[n] and returns[n], one of each per row, to all tokens of the row. [any]
void rlhf__spread(const rlhf_rollout *, const double *advantage, const double *returns);

// The loss term -w * coef * entropy over one row. Adds to u->entropy_loss, u->entropy (unweighted)
// and d->entropy. [step]
void rlhf__entropy_term(double coef, const rlhf_loss_in *, struct rlhf__span row, double w,
                        rlhf_heads *d, struct rlhf__pg_update_sums *u);

#endif
