// chained.h: adds the beginning and the phases of a run to its hash chain, RUN/chain.jsonl
// (keep/chain_log.h).
#ifndef RLHF_HOST_RUN_CHAINED_H
#define RLHF_HOST_RUN_CHAINED_H

#include "base/folder.h"
#include "learn/phase.h"

struct rlhf__run;

// Open the chain file in the folder `to`. If `keep` < 0, start a new file. Otherwise `keep` is the
// phase from which the run was resumed. Errors: those of rlhf__chain_log_open. [main]
rlhf_status rlhf__chained_open(struct rlhf__run *, const struct rlhf__folder *to, int64_t keep,
                               struct rlhf__error *err);

// Append the link of the phase r->count.phase. Call this before the phase's metrics are flushed. p
// is NULL for the link of phase 0, the evaluation of held-out responses before the first phase.
// [main]
rlhf_status rlhf__chained_phase(const struct rlhf__run *, const struct rlhf__phase *p,
                                struct rlhf__error *err);

#endif
