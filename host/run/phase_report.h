// phase_report.h: the metrics that the host itself knows, and the progress line, at a phase's end.
#ifndef RLHF_HOST_PHASE_REPORT_H
#define RLHF_HOST_PHASE_REPORT_H

#include "run/run.h"

// Set lr, episode, optim/*, time/*, perf/*, sampling/*; offer the phase to early stopping; write
// and show samples and progress. Called after the algorithm's phase_end, before t->phase advances.
// Errors: those of writing samples. [main]
rlhf_status rlhf__phase_report(struct rlhf__run *t, struct rlhf__error *err);

// The phase is counted, its metrics are not flushed yet: refuse (RLHF_E_INVALID, t->bad_input) a
// checkpoint.best or early_stop.* that looks at a metric which no phase has reported. [main]
rlhf_status rlhf__phase_measured(struct rlhf__run *t, struct rlhf__error *err);

#endif
