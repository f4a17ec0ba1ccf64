// ahead_phase.h: the part of a phase that rollout.ahead adds. It begins and completes the next
// batch, and reports the age of the rows and the waiting times. Without rollout.ahead these
// functions do nothing.
#ifndef RLHF_HOST_RUN_AHEAD_PHASE_H
#define RLHF_HOST_RUN_AHEAD_PHASE_H

#include "learn/phase.h"
#include "report/report.h"

// Begin to sample the next phase's batch. Call once the phase has all its prompts. [step]
rlhf_status rlhf__ahead_phase_begin(const struct rlhf__phase *p, struct rlhf__error *err);

// Call when the phase's rows are complete: report their age (sampling/staleness_mean,
// sampling/staleness_max). [step]
void rlhf__ahead_phase_rows(const struct rlhf__phase *p);

// Call when the phase has nothing more to do. Waits for the next batch. Reports how long training
// waited for sampling, and how long sampling waited for training. [step]
rlhf_status rlhf__ahead_phase_end(const struct rlhf__phase *p, struct rlhf__error *err);

// At the end of the run, log the shares of time in which each side waited. [main]
void rlhf__ahead_say(const struct rlhf__feed *feed, struct rlhf__log *log);

#endif
