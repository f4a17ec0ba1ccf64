// phase_warnings.h: what a run is warned of at the end of a phase, before the phase is counted:
// findings.h's, with the likely cause and the setting to change; a phase that teaches nothing; and
// a reward model whose scores do not begin where they were fitted to.
#ifndef RLHF_HOST_PHASE_WARNINGS_H
#define RLHF_HOST_PHASE_WARNINGS_H

#include "learn/phase.h"
#include "report/findings.h"
#include "report/report.h"

// Judge a phase after the algorithm's phase_end() and log what is new. Phases of rows of a file are
// not judged. [main]
void rlhf__phase_warnings(struct rlhf__findings *, const struct rlhf__phase *);

// A run whose adapter never moved ends after this many phases in which there was nothing to learn;
// a resumed run gets as many again.
enum { RLHF__STILL_PHASES = 16 };

// Whether the phase, whose metrics are set, taught anything: a run that teaches nothing looks like
// one that does. Warns once in a process of a phase in which all compared responses have the same
// reward (unless `findings` has a collapsed policy as the cause) and of one that left the adapter
// where it started, and adds such phases to *count. Errors: RLHF_E_NUMERIC for an adapter that has
// never moved although a step was taken for a loss whose gradient is not 0, or when there was
// nothing to learn in RLHF__STILL_PHASES phases or to the end of the run. [main]
rlhf_status rlhf__check_taught(const struct rlhf__phase *p, struct rlhf__count *count,
                               const struct rlhf__findings *findings, struct rlhf__error *err);

// Warn of bt_rm.so rewards whose scores in a run's first phase are far from mean 0 and standard
// deviation 1, because coefficients relative to them (algo.kl_coef) then mean something else. The
// phase's metrics are set. [main]
void rlhf__calibration_note(const struct rlhf__phase *p);

#endif
