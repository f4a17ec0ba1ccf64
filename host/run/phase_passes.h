// phase_passes.h: the passes of a phase that compute no gradients. They compute the values, the
// log-probs of the reference and of the named models and, if the plan asks for it, the policy's
// log-probs again.
#ifndef RLHF_HOST_RUN_PHASE_PASSES_H
#define RLHF_HOST_RUN_PHASE_PASSES_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// If the run needs the reference, run it on the rows in p->x, unless it has already run on them.
// Then run the named models. [step]
rlhf_status rlhf__phase_pass_reference(struct rlhf__phase *p, struct rlhf__error *err);

// Compute the values. If the plan asks for it, also recompute the old log-probs. Call this before
// the phase's first update. [step]
rlhf_status rlhf__phase_pass_policy(struct rlhf__phase *p, struct rlhf__error *err);

// Call rlhf__phase_pass_reference, rlhf__phase_pass_policy and then rlhf__phase_trim. [step]
rlhf_status rlhf__phase_passes(struct rlhf__phase *p, struct rlhf__error *err);

// If a reward needs the reference's log-probs, run the reference on the rows in x. Call this before
// the rows are scored. The time that this takes is added to the reference's time. [step]
rlhf_status rlhf__phase_refer(const struct rlhf__phase *p, struct rlhf__experience *x,
                              struct rlhf__error *err);

// Free the buffers of policy and critic. Call this after a part of the phase that used the buffers,
// so that the next part can use their memory. Does nothing if the run's rows come from a file,
// because a phase of such a run is a single step. [step]
void rlhf__phase_trim(const struct rlhf__phase *p);

#endif
