// microbatch.h: rows of a minibatch that go through the learner's models at once: both forwards,
// the objective's loss, both backwards.
//
// It does not know how a minibatch is cut, nor what a step makes of the gradients.
#ifndef RLHF_HOST_MICROBATCH_H
#define RLHF_HOST_MICROBATCH_H

#include "learn/learner.h"

// Where a minibatch is in its phase, and what its rows come to.
struct rlhf__place {
    uint32_t epoch, minibatch;
    int train;         // 0: the rows are still
    int only_compares; // 1: forward alone, for rlhf__learner_compare; no loss
    double loss;       // so far
};

// 1 when prompts of these rows are computed once a group. [any]
int rlhf__microbatch_shares(const struct rlhf__learner *, const struct rlhf__rows *);

// Room for the largest microbatch of the rows. [step]
rlhf_status rlhf__microbatch_reserve(struct rlhf__learner *, const struct rlhf__rows *,
                                     struct rlhf__error *err);

// Rows [from, to): their loss is added to the place's, and with train their gradients to the
// model's; with only_compares neither. [step]
rlhf_status rlhf__microbatch(struct rlhf__learner *, const struct rlhf__rows *, uint32_t from,
                             uint32_t to, struct rlhf__place *, struct rlhf__error *err);

#endif
