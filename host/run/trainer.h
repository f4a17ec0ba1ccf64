// trainer.h: what a run trains its models with, made of its parts: optimisers and the learner. The
// set-up makes them on the real models, the rehearsal on paper.
#ifndef RLHF_HOST_TRAINER_H
#define RLHF_HOST_TRAINER_H

#include "run/run.h"

// Values that the optimiser keeps of each parameter. [any]
int32_t rlhf__trainer_moments(const struct rlhf__config *c);

// Create the optimiser of m, the policy or the critic. [main]
rlhf_status rlhf__trainer_optim(const struct rlhf__run *r, const struct rlhf__model *m,
                                struct rlhf__optim **out, struct rlhf__error *err);

// The run's learner with these optimisers; the critic's is NULL without one. The caller finishes
// it. [any]
struct rlhf__learner rlhf__trainer_learner(const struct rlhf__run *r, struct rlhf__optim *optim,
                                           struct rlhf__optim *critic_optim);

#endif
