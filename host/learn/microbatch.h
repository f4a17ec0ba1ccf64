// microbatch.h: the rows of a minibatch that go through the learner's models together: both forward
// passes, the objective's loss, both backward passes.
//
// It does not know how a minibatch is cut or how a step uses the gradients.
#ifndef RLHF_HOST_MICROBATCH_H
#define RLHF_HOST_MICROBATCH_H

#include "learn/learner.h"

// Position of a minibatch in its phase, and its totals.
struct rlhf__place {
    uint32_t epoch, minibatch;
    int train;         // 0: forward only, since the rows are still
    int only_compares; // 1: a forward pass for rlhf__learner_compare only; no loss
    double loss;       // so far
};

// 1 if prompts of these rows are computed once per group. [any]
int rlhf__microbatch_shares(const struct rlhf__learner *, const struct rlhf__rows *);

// Allocate for the largest microbatch of the rows. [step]
rlhf_status rlhf__microbatch_reserve(struct rlhf__learner *, const struct rlhf__rows *,
                                     struct rlhf__error *err);

// Process rows [from, to): add their loss to the place. With train, also add their gradients to the
// model's. With only_compares, do neither. [step]
rlhf_status rlhf__microbatch(struct rlhf__learner *, const struct rlhf__rows *, uint32_t from,
                             uint32_t to, struct rlhf__place *, struct rlhf__error *err);

#endif
