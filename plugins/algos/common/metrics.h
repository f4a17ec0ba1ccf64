// metrics.h: the statistics that a policy-gradient algorithm collects over a phase and reports as
// metrics. docs/metrics.md has the names of these metrics. The statistics do not affect training.
#ifndef RLHF_ALGOS_COMMON_METRICS_H
#define RLHF_ALGOS_COMMON_METRICS_H

#include "common/advantage.h"
#include "common/surrogate.h"
#include "common/whiten.h"

#include <rlhf/algo.h>
#include <rlhf/host.h>

// Sums over the rollout. Each sequence is counted once per phase. So if advantages are computed for
// each minibatch, only the first epoch is counted.
struct rlhf__pg_rollout_sums {
    int64_t sequences, tokens;
    int64_t kl_sequences, kl_tokens; // numbers of sequences and tokens whose KL was measured
    int64_t masked;                  // sequences excluded from the loss
    double kl;                       // k1, or the exact KL if kl_estimator is full
    double penalty;                  // sum of the configured estimator
    double nll, score;               // sum of -logp_old; sum of the rewards
    struct rlhf__moments returns, values;
};

// The reward and the group of every sequence of the phase. A group may be split over several
// minibatches, so the spread of its rewards is known only at the end of the phase.
struct rlhf__pg_rows {
    double *reward; // [cap]
    double *judged; // [cap] a group is flat if its rows have the same number here
    int64_t *order; // [cap] scratch
    int32_t *group; // [cap]
    int64_t n, cap;
};

// Sums over the microbatches of a minibatch, or over the minibatches of a phase.
struct rlhf__pg_update_sums {
    struct rlhf__surrogate_sums pg;           // pg.loss: the weighted policy term
    double value_loss, kl_loss, entropy_loss; // multiplied by their coefficients
    double value_half; // half the mean (clipped) squared error, without the coefficient
    double entropy, value, value_error; // sums over tokens
    int64_t value_clipped;
};

// Sums that loss() accumulates for one shard (rlhf/shards.h). They cover the current minibatch,
// except the sum of the KL (kl_estimator=full), which covers the phase.
struct rlhf__pg_shard {
    struct rlhf__pg_update_sums minibatch;
    struct rlhf__pg_rollout_sums kl;
};

struct rlhf__pg_metrics {
    struct rlhf__pg_rollout_sums rollout;
    struct rlhf__pg_shard *shard; // [shards]
    double *scratch;              // scratch memory of reduce
    uint32_t shards;
    struct rlhf__pg_rows rows;
    struct rlhf__pg_update_sums minibatch, phase;
    int64_t minibatches;      // number of minibatches added to `phase`
    double last_epoch_loss;   // sum of total losses in the latest epoch
    int64_t last_epoch_count; // number of minibatches in the latest epoch
    int64_t last_epoch;       // the latest epoch; -1 before the first
};

// Which metrics the current options have.
struct rlhf__pg_report {
    double kl_coef;
    int32_t kl_penalised, critic, sampled_support, groups, masks, unclipped;
};

// Records the rewards of a rollout. reward[n] has one number per row, without the KL penalty. A
// group counts as one without spread if judged[n] is the same for all its rows. If `together` is 1,
// all rows count as one group. If memory runs out, reports RLHF_E_NOMEM through host->fail. [step]
rlhf_status rlhf__pg_take_rows(const rlhf_host *, struct rlhf__pg_metrics *, const rlhf_rollout *,
                               const double *reward, const double *judged, int32_t together);

// The total loss of a minibatch. [any]
double rlhf__pg_total_loss(const struct rlhf__pg_update_sums *);

// Add *from to *to, field by field. [any]
void rlhf__pg_add(struct rlhf__pg_update_sums *to, const struct rlhf__pg_update_sums *from);

// The mean of (x - o)^2 / 2 over the tokens of the current minibatch, where x is the log-prob now
// and o the log-prob at rollout; 0 if there are no tokens. [any]
double rlhf__pg_approx_kl(const struct rlhf__pg_update_sums *);

// Allocate the sums of the run's shards. Call this function from plan(). If memory runs out,
// reports RLHF_E_NOMEM through host->fail. [main]
rlhf_status rlhf__pg_metrics_plan(const rlhf_host *, struct rlhf__pg_metrics *,
                                  const rlhf_run_info *);

// Both functions add up sums of loss() over the shards of all workers. rlhf__pg_reduce does so for
// the current minibatch; call it before any decision that depends on these sums. rlhf__pg_reduce_kl
// does so for the KL; call it if loss() measures the KL (kl_estimator=full). [step]
rlhf_status rlhf__pg_reduce(const rlhf_host *, struct rlhf__pg_metrics *);
rlhf_status rlhf__pg_reduce_kl(const rlhf_host *, struct rlhf__pg_metrics *);

// Unless the step of the current minibatch was skipped, adds the minibatch to the phase. Then
// clears the minibatch. A minibatch in which all rows are masked counts with loss 0, so that the
// mean over minibatches equals the loss that is minimized. [step]
void rlhf__pg_fold(struct rlhf__pg_metrics *, const rlhf_step_info *);

// Send the phase's metrics to host->metric. [step]
void rlhf__pg_report(const rlhf_host *, const struct rlhf__pg_metrics *,
                     const struct rlhf__pg_report *);

// Clear the phase. The memory of rows and shards is kept until rlhf__pg_metrics_finish. [any]
void rlhf__pg_metrics_reset(struct rlhf__pg_metrics *);
void rlhf__pg_metrics_finish(const rlhf_host *, struct rlhf__pg_metrics *); // [main]

#endif
