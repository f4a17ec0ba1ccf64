// taught.h: whether a phase taught anything: detects rewards that do not distinguish responses, and
// an adapter that does not move. Both make a run that teaches nothing look like one that does.
#ifndef RLHF_HOST_TAUGHT_H
#define RLHF_HOST_TAUGHT_H

#include "run/run.h"

// Phases without anything to learn from after which a run whose adapter never moved is given up; a
// resumed one gets as many again.
enum { RLHF__STILL_PHASES = 16 };

// Called when the phase's metrics are set and before it is counted: warns, once in a process, of a
// phase in which all compared responses have the same reward (a collapsed policy is named as the
// cause if findings.h found one), and of one that left the adapter where it
// started; counts such phases. Errors: RLHF_E_NUMERIC, with an adapter that has never moved: a step
// was taken for a loss that wants it elsewhere, or nothing was asked of it in RLHF__STILL_PHASES
// phases or to the end of the run. [main]
rlhf_status rlhf__taught(struct rlhf__run *r, const struct rlhf__phase *p, struct rlhf__error *err);

#endif
