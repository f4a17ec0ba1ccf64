// terms.h: the KL and entropy terms of a policy-gradient loss, and the KL penalty in the reward.
// surrogate.h has the surrogate, and kl_control.h the coefficient of the KL penalty.
#ifndef RLHF_ALGOS_COMMON_TERMS_H
#define RLHF_ALGOS_COMMON_TERMS_H

#include "common/kl.h"
#include "common/metrics.h"
#include "common/rows.h"

// Estimate the KL of token t, which is in row i, from the rollout's log-probs. `kind` is K1, K2 or
// K3. Returns RLHF_E_NUMERIC, with a message, if the estimate is not finite. [step]
rlhf_status rlhf__kl_of_token(const rlhf_host *, int32_t kind, const rlhf_rollout *, int64_t i,
                              int64_t t, double *kl);

// Set *paid to the total reward of row i minus coef times the sum of its tokens' KL. [step]
rlhf_status rlhf__penalised_reward(const rlhf_host *, int32_t kind, double coef,
                                   const rlhf_rollout *, int64_t i, double *paid);

// Add a row of a rollout to the statistics: the number of its tokens and the sum of -logp_old. Also
// add the row's KL if logp_ref is available and kind is not FULL. [step]
void rlhf__count_row(struct rlhf__pg_rollout_sums *, int32_t kind, const rlhf_rollout *,
                     struct rlhf__span row);

// Computes the loss term w * beta * KL over the response tokens of one row. Adds the term to
// u->kl_loss, and its gradient to d->logp or, if kind is FULL, to d->kl. If kind is FULL and this
// is the first epoch, also adds the KL to *r, the rollout's sums. Skips tokens outside of the
// sampled support. Returns RLHF_E_NUMERIC if a reference log-prob is not finite. [step]
rlhf_status rlhf__kl_term(const rlhf_host *, int32_t kind, double beta, const rlhf_loss_in *,
                          struct rlhf__span row, double w, const rlhf_head_gradients *d,
                          struct rlhf__pg_update_sums *u, struct rlhf__pg_rollout_sums *r);

// Adds the n rows of a rollout to the statistics. All tokens of a row must have the same return.
// Counts the tokens (rlhf__count_row) and records the rewards: plain[n] without the KL penalty, and
// paid[n] with it. paid[i] is also the return of row i. judged[n] is as for rlhf__pg_take_rows. If
// memory runs out, reports RLHF_E_NOMEM through host->fail. [step]
rlhf_status rlhf__count_paid(const rlhf_host *, struct rlhf__pg_metrics *, int32_t kind,
                             const rlhf_rollout *, const double *plain, const double *paid,
                             const double *judged);

// Copies advantage[i] and returns[i] to all tokens of row i. [any]
void rlhf__spread(const rlhf_rollout *, const double *advantage, const double *returns,
                  rlhf_advantages *out);

// Computes the loss term -w * coef * entropy of one row. Adds the term to u->entropy_loss, the
// entropy itself to u->entropy, and the gradient to d->entropy. [step]
void rlhf__entropy_term(double coef, const rlhf_loss_in *, struct rlhf__span row, double w,
                        const rlhf_head_gradients *d, struct rlhf__pg_update_sums *u);

#endif
