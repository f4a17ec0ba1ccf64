// phase_report.h: metrics of the host itself and of the responses as texts, samples, and the
// progress line of a phase.
#ifndef RLHF_HOST_PHASE_REPORT_H
#define RLHF_HOST_PHASE_REPORT_H

#include "learn/phase.h"
#include "report/findings.h"
#include "report/report.h"

// Set objective/scores, completions/*, val/sequence_lengths, val/num_stop_token_ids from the
// phase's first responses, before some of them are replaced. [main]
rlhf_status rlhf__completions_measure(const struct rlhf__phase *p, struct rlhf__error *err);

// Store samples of the responses that are learned from in p->report->shown. [main]
rlhf_status rlhf__completions_take(const struct rlhf__phase *p, struct rlhf__error *err);

void rlhf__shown_finish(struct rlhf__shown *); // accepts a zeroed one [any]

#define RLHF__REWARD_METRIC "objective/scores" // mean reward of the phase's responses

// Set lr, episode, optim/*, time/*, perf/*, sampling/*. Called after the algorithm's phase_end()
// and after the phase's sequences have been counted, but before the phase itself is. [main]
void rlhf__phase_metrics(const struct rlhf__phase *p);

// Write and show samples and progress of the phase, whose metrics are set; is_last = 1: early
// stopping ends the run after it. Errors: those of writing samples. [main]
rlhf_status rlhf__phase_show(const struct rlhf__phase *p, int is_last, struct rlhf__error *err);

// ---- phase_warnings.c: warnings at the end of a phase, before the phase is counted ----
//
// Findings (findings.h) with the likely cause and the setting to change, a phase without a learning
// signal, and a reward model whose scores do not start at the scale that they were fitted to.

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
