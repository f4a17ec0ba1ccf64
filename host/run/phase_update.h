// phase_update.h: the updates of a phase: advantages, and the epochs of minibatches.
#ifndef RLHF_HOST_RUN_PHASE_UPDATE_H
#define RLHF_HOST_RUN_PHASE_UPDATE_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Train on the rows in p->x, which the passes (phase_passes.h) must have filled. Writes the records
// for log.rollouts, and notes how far an adapter moved. [step]
rlhf_status rlhf__phase_update(struct rlhf__phase *p, struct rlhf__error *err);

#endif
