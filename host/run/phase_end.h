// phase_end.h: tells an algorithm what the host measured in a phase (rlhf_algo_ops.phase_end).
#ifndef RLHF_HOST_RUN_PHASE_END_H
#define RLHF_HOST_RUN_PHASE_END_H

#include "learn/phase.h"
#include "report/report.h"

// Call the algorithm's phase_end(). The phase's updates are done, and p->count->phase is still the
// number of this phase. Errors: those of the algorithm. [step]
rlhf_status rlhf__phase_end(const struct rlhf__phase *p, struct rlhf__error *err);

#endif
