// actor.h: what a process that only samples does during a run (parallel.actors).
#ifndef RLHF_HOST_ACTOR_H
#define RLHF_HOST_ACTOR_H

#include "run/run.h"

// Sample what the learners ask for, until they need no more. Errors: those of rlhf__rollout and of
// the learners. [main]
rlhf_status rlhf__actor_run(struct rlhf__run *r, struct rlhf__error *err);

#endif
