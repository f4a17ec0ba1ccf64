// actor.h: runs a process that only samples responses (parallel.actors).
#ifndef RLHF_HOST_RUN_ACTOR_H
#define RLHF_HOST_RUN_ACTOR_H

#include "run/run.h"

// Sample the responses that the learners request, until the learners end. Errors: those of
// rlhf__rollout and of the learners. [main]
rlhf_status rlhf__actor_run(struct rlhf__run *r, struct rlhf__error *err);

#endif
