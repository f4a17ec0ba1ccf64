// phase_run.h: one phase of a run: its rows, their values before training, the updates, and
// held-out rows.
#ifndef RLHF_HOST_PHASE_RUN_H
#define RLHF_HOST_PHASE_RUN_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Fill p->x and learn from it. Everything that can fail for external reasons (a reward, a judge, a
// file) happens before the first step, so that the weights are still those of the phase boundary.
// p->x.drawn is correct after failures too. [step]
rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err);

// Part of it: passes over the rows in p->x without gradients: reference, values, log-probs. [step]
rlhf_status rlhf__phase_passes(struct rlhf__phase *p, struct rlhf__error *err);

// A part of the phase is done with policy and critic: free their buffers for it, so that the parts
// of a phase do not add up. With rows of a file a phase is one step, and nothing is freed. [step]
void rlhf__phase_trim(const struct rlhf__phase *p);

// Part of it: the updates: advantages, epochs of minibatches, and records for log.rollouts. Learns
// from p->x, whose numbers must all be set. [step]
rlhf_status rlhf__phase_update(struct rlhf__phase *p, struct rlhf__error *err);

#endif
