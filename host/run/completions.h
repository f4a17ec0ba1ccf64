// completions.h: what can be said about a phase's responses as texts: metrics and samples.
#ifndef RLHF_HOST_COMPLETIONS_H
#define RLHF_HOST_COMPLETIONS_H

#include "run/run.h"
#include "sample/scoring.h"

// Set objective/scores, completions/*, val/sequence_lengths, val/num_stop_token_ids, epoch; keep
// the samples in t->shown. [main]
rlhf_status rlhf__completions_report(struct rlhf__run *t, const struct rlhf__episodes *e,
                                     const struct rlhf__scored *x, struct rlhf__error *err);

// At a phase's end: write and show the samples kept, when it is their turn (log.samples_every), in
// the first phase and in the last, early stopping included. [main]
rlhf_status rlhf__completions_show(struct rlhf__run *t, struct rlhf__error *err);

void rlhf__shown_finish(struct rlhf__shown *); // accepts a zeroed one [any]

#endif
