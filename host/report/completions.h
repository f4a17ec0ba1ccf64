// completions.h: what can be said about a phase's responses as texts: metrics and samples.
#ifndef RLHF_HOST_COMPLETIONS_H
#define RLHF_HOST_COMPLETIONS_H

#include "learn/phase.h"
#include "report/report.h"

// Set objective/scores, completions/*, val/sequence_lengths, val/num_stop_token_ids, of the phase's
// first responses, before some of them are replaced. [main]
rlhf_status rlhf__completions_measure(const struct rlhf__phase *p, struct rlhf__error *err);

// Keep samples of the responses that are learned from, in p->report->shown. [main]
rlhf_status rlhf__completions_take(const struct rlhf__phase *p, struct rlhf__error *err);

// At a phase's end: write and show the samples kept, when it is their turn (log.samples_every), in
// the first phase and in the last; is_last = 1 where that is known only now. [main]
rlhf_status rlhf__completions_show(const struct rlhf__phase *p, int is_last,
                                   struct rlhf__error *err);

void rlhf__shown_finish(struct rlhf__shown *); // accepts a zeroed one [any]

#endif
