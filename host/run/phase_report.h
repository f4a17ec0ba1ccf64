// phase_report.h: the metrics that the host itself knows, and the progress line, at a phase's end.
#ifndef RLHF_HOST_PHASE_REPORT_H
#define RLHF_HOST_PHASE_REPORT_H

#include "keep/best.h"
#include "learn/phase.h"
#include "report/report.h"
#include "run/early_stop.h"

// Set lr, episode, optim/*, time/*, perf/*, sampling/*; offer the phase to early stopping, *stop =
// 1 when it ends the run; write and show samples and progress. Called after the algorithm's
// phase_end, before the phase is counted; its sequences are. Errors: those of writing samples.
// [main]
rlhf_status rlhf__phase_report(const struct rlhf__phase *p, struct rlhf__early_stop *early_stop,
                               int32_t *stop, struct rlhf__error *err);

// The phase is counted, its metrics are not flushed yet: refuse (RLHF_E_INVALID) a checkpoint.best
// or early_stop.* that looks at a metric which no phase has reported. [main]
rlhf_status rlhf__phase_measured(const struct rlhf__phase *p, const struct rlhf__best *best,
                                 const struct rlhf__early_stop *early_stop,
                                 struct rlhf__error *err);

#endif
