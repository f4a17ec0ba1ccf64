// phase_report.h: the metrics that the host itself knows, and the progress line, at a phase's end.
#ifndef RLHF_HOST_PHASE_REPORT_H
#define RLHF_HOST_PHASE_REPORT_H

#include "train/trainer.h"

// Set lr, episode, optim/*, time/*, perf/*, sampling/*; offer the phase to early stopping; write
// and show samples and progress. Called after the algorithm's phase_end, before t->phase advances.
// Errors: RLHF_E_INVALID when no phase has measured what early_stop.* looks at; those of writing
// samples. [main]
rlhf_status rlhf__phase_report(struct rlhf__trainer *t, struct rlhf__error *err);

#endif
