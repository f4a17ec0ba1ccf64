// taught.h: whether a phase taught anything: rewards that tell no response from another, an adapter
// that stays where it is. Both make a run that teaches nothing look like one that does.
#ifndef RLHF_HOST_TAUGHT_H
#define RLHF_HOST_TAUGHT_H

#include "run/run.h"

// Phases without anything to learn from after which a run whose adapter never moved is given up; a
// resumed one gets as many again.
enum { RLHF__STILL_PHASES = 16 };

// Called when the phase's metrics are set and before it is counted: warns, once in a process, of a
// phase in which all that are compared have the same reward (for which a collapsed policy is the
// cause where there is one: findings.h), and of one that left the adapter where it
// started; counts such phases. Errors: RLHF_E_NUMERIC, with an adapter that has never moved: a step
// was taken for a loss that wants it elsewhere, or nothing was asked of it in RLHF__STILL_PHASES
// phases or to the end of the run. [main]
rlhf_status rlhf__taught(struct rlhf__run *r, const struct rlhf__phase *p, struct rlhf__error *err);

#endif
