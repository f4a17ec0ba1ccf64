// phase_warnings.h: logs the findings of a phase (findings.h), with the likely cause and the
// setting to change.
#ifndef RLHF_HOST_PHASE_WARNINGS_H
#define RLHF_HOST_PHASE_WARNINGS_H

#include "learn/phase.h"
#include "report/findings.h"
#include "report/report.h"

// Judge a phase after the algorithm's phase_end(), before it is counted, and log what is new.
// Phases of rows of a file are not judged. [main]
void rlhf__phase_warnings(struct rlhf__findings *, const struct rlhf__phase *);

#endif
