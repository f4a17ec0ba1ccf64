// phase_run.h: runs one phase. It gets the rows, runs the passes without gradients
// (phase_passes.h), updates the weights, and evaluates held-out rows. All algorithms have these
// steps. Only rows with rewards have advantages, and only they are shuffled in each epoch.
#ifndef RLHF_HOST_RUN_PHASE_RUN_H
#define RLHF_HOST_RUN_PHASE_RUN_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// Fill p->x and train on it. Everything that can fail for external reasons (a reward, a judge, a
// file) happens before the first step, while the weights are still those of the phase boundary. The
// one exception is the evaluation of held-out rows, which follows the last step. p->x.drawn is
// correct even after a failure. [step]
rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err);

#endif
