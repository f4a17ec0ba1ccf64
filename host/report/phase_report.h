// phase_report.h: metrics of the host itself and of the responses as texts, samples, and the
// progress line of a phase.
#ifndef RLHF_HOST_PHASE_REPORT_H
#define RLHF_HOST_PHASE_REPORT_H

#include "learn/phase.h"
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

#endif
