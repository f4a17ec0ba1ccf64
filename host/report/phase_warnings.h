// phase_warnings.h: warnings at the end of a phase, before the phase is counted: those of
// findings.h, with the likely cause and the setting to change; a phase without a learning signal;
// and a reward model whose scores do not start at the scale that they were fitted to.
#ifndef RLHF_HOST_PHASE_WARNINGS_H
#define RLHF_HOST_PHASE_WARNINGS_H

#include "learn/phase.h"
#include "report/findings.h"
#include "report/report.h"

// Check a phase after the algorithm's phase_end() and log new findings. Phases with rows of a file
// are not checked. [main]
void rlhf__phase_warnings(struct rlhf__findings *, const struct rlhf__phase *);

// A run whose adapter has never moved ends after this many phases without a learning signal; a
// resumed run gets as many again.
enum { RLHF__STILL_PHASES = 16 };

// Whether the phase, whose metrics are set, taught the model anything: a run that teaches nothing
// would otherwise look like any other. Warns once per process of a phase in which all compared
// responses have the same reward (unless `findings` has a collapsed policy as the cause) and of one
// that left the adapter at its start, and adds such phases to *count. Errors: RLHF_E_NUMERIC for an
// adapter that has never moved although a step was taken for a loss whose gradient is not 0, or if
// RLHF__STILL_PHASES phases, or all phases to the end of the run, gave no learning signal. [main]
rlhf_status rlhf__check_learning(const struct rlhf__phase *p, struct rlhf__count *count,
                                 const struct rlhf__findings *findings, struct rlhf__error *err);

// Warn of bt_rm.so rewards whose scores in a run's first phase are far from mean 0 and standard
// deviation 1, because coefficients relative to them (algo.kl_coef) then have a different effect.
// The phase's metrics are set. [main]
void rlhf__calibration_note(const struct rlhf__phase *p);

#endif
