// minibatch.h: trains a learner on a minibatch: forward, loss and backward in microbatches, and
// then one optimizer step.
#ifndef RLHF_HOST_LEARN_MINIBATCH_H
#define RLHF_HOST_LEARN_MINIBATCH_H

#include "learn/learner.h"

// Train on one minibatch: compute the gradients of the objective's loss over all rows, and take an
// optimizer step, in which lr_factor multiplies the learning rates. Then pack the weights again and
// call the objective's stepped(). *stop is 1 if stepped() ends the phase.
//
// - Prompts are shared if the rows allow it (RLHF__SHARE_PROMPTS) and the model supports it.
// - microbatch_tokens limits the tokens that the model computes at a time.
// - If a loss or gradient is not finite, the step is skipped.
// - Policy and critic are clipped by separate gradient norms.
// - Rows that the algorithm marked (rows->use) as without a gradient or as excluded are left out of
//   the backward pass. A step is taken even if all rows are left out. [step]
rlhf_status rlhf__minibatch(struct rlhf__learner *, const struct rlhf__rows *, uint32_t epoch,
                            uint32_t minibatch, double lr_factor, int32_t *stop,
                            struct rlhf__error *err);

#endif
