// metrics.h: statistics of a policy-gradient algorithm over a phase, reported as metrics. Names:
// docs/metrics.md. They do not affect training.
#ifndef RLHF_ALGOS_COMMON_METRICS_H
#define RLHF_ALGOS_COMMON_METRICS_H

#include "common/advantage.h"
#include "common/surrogate.h"
#include "common/whiten.h"

#include <rlhf/algo.h>
#include <rlhf/host.h>

// Sums over the rollout. Each sequence counts once; in minibatch scope, during the first epoch.
struct rlhf__pg_rollout_sums {
    int64_t sequences, tokens;
    int64_t kl_sequences, kl_tokens; // those whose KL was measured
    int64_t masked;                  // sequences excluded from the loss
    double kl;                       // k1, or the exact KL with kl_estimator full
    double penalty;                  // sum of the configured estimator
    double nll, score;               // sum of -logp_old; sum of the rewards
    struct rlhf__moments returns, values;
};

// Reward and group of every sequence of the phase: groups may be split over minibatches, so their
// spread is known only at the end of the phase.
struct rlhf__pg_rows {
    double *reward; // [cap]
    int64_t *order; // [cap] scratch
    int32_t *group; // [cap]
    int64_t n, cap;
};

// Sums over the microbatches of one minibatch, and over the minibatches of a phase.
struct rlhf__pg_update_sums {
    struct rlhf__surrogate_sums pg;           // pg.loss: weighted policy term
    double value_loss, kl_loss, entropy_loss; // with their coefficients
    double value_half; // half the mean (clipped) squared error: value_loss without coefficient
    double entropy, value, value_error; // sums over tokens
    int64_t value_clipped;
};

// What loss() accumulates for one shard (rlhf/shards.h): the current minibatch and, with
// kl_estimator full, the phase's KL.
struct rlhf__pg_shard {
    struct rlhf__pg_update_sums minibatch;
    struct rlhf__pg_rollout_sums kl;
};

struct rlhf__pg_metrics {
    struct rlhf__pg_rollout_sums rollout;
    struct rlhf__pg_shard *shard; // [shards]
    double *scratch;              // of reduce
    uint32_t shards, reserved;
    struct rlhf__pg_rows rows;
    struct rlhf__pg_update_sums minibatch, phase;
    int64_t minibatches;      // folded into phase
    double last_epoch_loss;   // sum of total losses in the latest epoch
    int64_t last_epoch_count; // its minibatches
    int64_t last_epoch;       // -1 before the first
};

// Which metrics exist under the current options.
struct rlhf__pg_report {
    double kl_coef;
    int32_t kl_penalised, critic, sampled_support, groups, masks, unclipped;
};

// Record reward[n], the rewards of a rollout's n rows without the KL penalty. together = 1: all
// rows are one group. RLHF_E_NOMEM through host->fail. [step]
rlhf_status rlhf__pg_take_rows(const rlhf_host *, struct rlhf__pg_metrics *, const rlhf_rollout *,
                               const double *reward, int32_t together);

// Total loss of a minibatch. [any]
double rlhf__pg_total_loss(const struct rlhf__pg_update_sums *);

// *to += *from, field by field. [any]
void rlhf__pg_add(struct rlhf__pg_update_sums *to, const struct rlhf__pg_update_sums *from);

// Mean (x - o)^2 / 2 of the current minibatch; 0 without tokens. [any]
double rlhf__pg_approx_kl(const struct rlhf__pg_update_sums *);

// Allocate space for the run's shards. Call it from plan(). RLHF_E_NOMEM through host->fail. [main]
rlhf_status rlhf__pg_metrics_plan(const rlhf_host *, struct rlhf__pg_metrics *,
                                  const rlhf_run_info *);

// Add up statistics from loss() over the shards of all workers. rlhf__pg_reduce does this for the
// current minibatch; call it before a decision uses these statistics. rlhf__pg_reduce_kl does it
// for the KL, if loss() measures the KL (kl_estimator full). [step]
rlhf_status rlhf__pg_reduce(const rlhf_host *, struct rlhf__pg_metrics *);
rlhf_status rlhf__pg_reduce_kl(const rlhf_host *, struct rlhf__pg_metrics *);

// Add the current minibatch to the phase, unless its step was skipped, and clear the minibatch. A
// minibatch without rows in the loss counts with loss 0, so that the mean over minibatches equals
// the minimized loss. [step]
void rlhf__pg_fold(struct rlhf__pg_metrics *, const rlhf_step_info *);

// Send the phase's metrics to host->metric. [step]
void rlhf__pg_report(const rlhf_host *, const struct rlhf__pg_metrics *,
                     const struct rlhf__pg_report *);

// Clear the phase; the memory of rows and shards is kept until finish. [any]
void rlhf__pg_metrics_reset(struct rlhf__pg_metrics *);
void rlhf__pg_metrics_finish(const rlhf_host *, struct rlhf__pg_metrics *); // [main]

#endif
