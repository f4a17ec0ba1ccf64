// microbatch.h: runs a part of a minibatch's rows through the learner's models: the forward passes
// of the policy and of a separate critic, the objective's loss, and the backward passes of these
// models.
//
// This code does not know how a minibatch is cut or how a step uses the gradients.
#ifndef RLHF_HOST_LEARN_MICROBATCH_H
#define RLHF_HOST_LEARN_MICROBATCH_H

#include "learn/learner.h"

// Returns 1 if the prompts of these rows are computed once per group. [any]
int rlhf__microbatch_shares(const struct rlhf__learner *, const struct rlhf__rows *);

// Allocate buffers for the largest microbatch of the rows. [step]
rlhf_status rlhf__microbatch_reserve(struct rlhf__learner *, const struct rlhf__rows *,
                                     struct rlhf__error *err);

// Run rows [from, to) and add their loss to the place's `loss`. If the place's `train` is 1, also
// add the gradients to the models' gradients. If its `only_compares` is 1, compute no loss and no
// gradients. [step]
rlhf_status rlhf__microbatch(struct rlhf__learner *, const struct rlhf__rows *, uint32_t from,
                             uint32_t to, struct rlhf__place *, struct rlhf__error *err);

#endif
