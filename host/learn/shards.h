// shards.h: the shards of a learner's minibatches. The gradients of the shards are added up in the
// order of a fixed tree (team/tree.h). Losses and other numbers are added up in the order of the
// shards. So no result depends on which process computed which shard.
#ifndef RLHF_HOST_LEARN_SHARDS_H
#define RLHF_HOST_LEARN_SHARDS_H

#include "learn/learner.h"
#include "learn/shard_sums.h"
#include "team/sum_overlap.h"

// The numbers that the learner adds up while it trains on rows, kept for each shard. All are
// doubles, in which counts are exact up to 2^53.
struct rlhf__shard_numbers {
    double loss, difference_sum, difference_max, compared;
    double fall_sum, fall_tokens, tokens, flops, asked;
    double sums[RLHF__LEARNER_SUMS]; // of the objective
};

struct rlhf__shards {
    const struct rlhf__share *share;
    struct rlhf__shard_sums sums;
    uint32_t *first;                     // [shards + 1] the rows of each shard (batch/deal.h)
    struct rlhf__shard_numbers *numbers; // [shards]
    struct rlhf__shard_numbers *own;     // [shards] the numbers that other processes receive
    struct rlhf__overlap early;          // the sum of the policy's gradients, if it began early
    struct rlhf__overlap late;           // the policy's new values, while they are received
    uint32_t n;                          // rows of the current minibatch
    int32_t met;                         // 1: the processes have agreed to exchange gradients early
};

// Set l->shards for the shards of `share`. With one shard, l->shards stays NULL. `share` is
// borrowed. l must have its optimizers already. The buffers are allocated here. [main]
rlhf_status rlhf__shards_open(struct rlhf__learner *l, const struct rlhf__share *share,
                              struct rlhf__error *err);
void rlhf__shards_close(struct rlhf__learner *l); // l->shards becomes NULL [main]

// Runs rows in microbatches, as part of a minibatch.
typedef rlhf_status (*rlhf__shards_run_fn)(struct rlhf__learner *, const struct rlhf__rows *,
                                           struct rlhf__place *, struct rlhf__error *);

// Begin a minibatch with the rows e. [step]
void rlhf__shards_begin(struct rlhf__learner *, const struct rlhf__rows *e);
// If new values are still being received, make the policy's forward pass *f wait for them. [step]
void rlhf__shards_want(struct rlhf__learner *, rlhf_forward *f);
// Call this when the forward pass of rlhf__shards_want has ended. The values have then been
// received. Errors: those of the team. [step]
rlhf_status rlhf__shards_received(struct rlhf__learner *, struct rlhf__error *err);
// Call before every backward pass. Before the first one of a minibatch, processes that can exchange
// gradients during the backward pass agree to do so. Errors: those of rlhf__team_agree. [step]
rlhf_status rlhf__shards_meet(struct rlhf__learner *, struct rlhf__error *err);
// If the gradients are one range in host memory, make the backward pass of *f report each part of
// the range as soon as the part is complete. The part is then processed at once. In the last shard
// it can also be summed over the processes while the pass goes on. Call this before the last
// backward pass of each shard. [step]
void rlhf__shards_watch(struct rlhf__learner *, rlhf_forward *f);
// Divide the rows into shards (`share` is as in rlhf__deal), and call `run` for each shard of this
// process that has rows. With p->train, also adds up the shards' gradients. Call this with
// p->train exactly once per minibatch, even for a minibatch without rows. [step]
rlhf_status rlhf__shards_rows(struct rlhf__learner *, const struct rlhf__rows *, int share,
                              struct rlhf__place *p, rlhf__shards_run_fn run,
                              struct rlhf__error *err);
// End the minibatch with the rows e: exchange numbers and gradients with the other processes.
// Afterwards the learner has the numbers of all shards, p->loss is the loss, and the gradients of
// this process's blocks are the sums over all shards. `st` is the result of the work so far, with
// its message in *err. If `st` is not RLHF_OK, returns `st`. [step]
rlhf_status rlhf__shards_end(struct rlhf__learner *, const struct rlhf__rows *e,
                             struct rlhf__place *p, rlhf_status st, struct rlhf__error *err);

// Call this before the policy's step. Returns 1 if the policy's new values may be received while
// the next minibatch begins. The step then does not receive them, so the caller must call
// rlhf__shards_renew. [step]
int rlhf__shards_plan_late(struct rlhf__learner *);
// Call this after a step for which rlhf__shards_plan_late returned 1. With now = 0, begins to
// receive the new values. With now = 1, receives them completely and refreshes the policy. [step]
rlhf_status rlhf__shards_renew(struct rlhf__learner *, int now, struct rlhf__error *err);
// If new values are still being received, wait for them, and refresh the policy. [step]
rlhf_status rlhf__shards_settle(struct rlhf__learner *, struct rlhf__error *err);

#endif
