// ahead_phase.h: the part of a phase that rollout.ahead adds. It begins and completes the next
// batch, and reports the age of the rows and the waiting times. Without rollout.ahead these
// functions do nothing.
#ifndef RLHF_HOST_RUN_AHEAD_PHASE_H
#define RLHF_HOST_RUN_AHEAD_PHASE_H

#include "learn/phase.h"
#include "report/report.h"

// Begin to sample the next phase's batch. Call this once, when the current phase has all its
// prompts. [step]
rlhf_status rlhf__ahead_phase_begin(const struct rlhf__phase *p, struct rlhf__error *err);

// Report the age of the phase's rows (sampling/staleness_mean, sampling/staleness_max). Call this
// when the rows are complete. [step]
void rlhf__ahead_phase_rows(const struct rlhf__phase *p);

// Wait for the next batch. Report how long training waited for sampling, and how long sampling
// waited for training. Call this when the phase has nothing more to do. [step]
rlhf_status rlhf__ahead_phase_end(const struct rlhf__phase *p, struct rlhf__error *err);

// At the end of the run, log which share of the time training and sampling waited for each other.
// [main]
void rlhf__ahead_say(const struct rlhf__feed *feed, struct rlhf__log *log);

#endif
