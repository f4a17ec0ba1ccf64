// phase_report.h: the metrics that the host itself knows, and the progress line, at a phase's end.
#ifndef RLHF_HOST_PHASE_REPORT_H
#define RLHF_HOST_PHASE_REPORT_H

#include "train/trainer.h"

// Set lr, episode, optim/*, time/*, perf/*, sampling/*; offer the phase to early stopping; show
// progress. Called after the algorithm's phase_end, before t->phase advances. [main]
void rlhf__phase_report(struct rlhf__trainer *t);

#endif
