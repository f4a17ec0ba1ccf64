// phase_run.h: one phase of a run: its rows, what is said of them before they are learned from, the
// updates, and what is held out.
#ifndef RLHF_HOST_PHASE_RUN_H
#define RLHF_HOST_PHASE_RUN_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Fill p->x and learn from it. What can fail for reasons outside (a reward, a judge, a file) comes
// before the first step, so that the weights are still those of the boundary; p->x.drawn is right
// after failures too. [step]
rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err);

// Of it, what looks at the rows in p->x without gradients: reference, values, log-probs. [step]
rlhf_status rlhf__phase_passes(struct rlhf__phase *p, struct rlhf__error *err);

// Policy and critic are done with a part of it: what they held for that part may go, so that the
// parts of a phase do not add up. Where rows come from a file a phase is one step, and all stays.
// [step]
void rlhf__phase_trim(const struct rlhf__phase *p);

// Of it, the updates: advantages, epochs of minibatches, and what log.rollouts records of them.
// Learns from p->x, whose numbers are all there. [step]
rlhf_status rlhf__phase_update(struct rlhf__phase *p, struct rlhf__error *err);

#endif
