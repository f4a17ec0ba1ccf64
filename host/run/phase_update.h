// phase_update.h: the updates of a phase: advantages, epochs of minibatches, and what is kept of
// them with log.rollouts.
#ifndef RLHF_HOST_PHASE_UPDATE_H
#define RLHF_HOST_PHASE_UPDATE_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Learn from p->x, whose rows and numbers are there. [step]
rlhf_status rlhf__phase_update(struct rlhf__phase *p, struct rlhf__error *err);

#endif
