// within_limits.h: recomputes phases of a run with another backend, from the recorded responses and
// scores, and compares the results within limits for rounding (docs/verifying.md).
#ifndef RLHF_TOOLS_VERIFY_WITHIN_LIMITS_H
#define RLHF_TOOLS_VERIFY_WITHIN_LIMITS_H

#include "verify/replay.h"

// Recompute the phases and append what differs to the faults. Phases that lack a checkpoint or
// their responses are left out, and counted in told->left. Errors: those of resuming the run;
// RLHF_E_INVALID if no phase can be recomputed and no fault is known. [main]
rlhf_status rlhf__within_limits(const struct rlhf__replay_job *, struct rlhf__replay_told *,
                                struct rlhf__faults *, struct rlhf__error *err);

#endif
