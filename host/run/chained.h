// chained.h: adds the beginning and the phases of a run to its hash chain, RUN/chain.jsonl
// (keep/chain_log.h).
#ifndef RLHF_HOST_RUN_CHAINED_H
#define RLHF_HOST_RUN_CHAINED_H

#include "base/folder.h"
#include "learn/phase.h"

struct rlhf__run;

// Open the file in the folder `to`. If keep < 0, the file is new, otherwise `keep` is the phase
// from which the run was resumed. Errors: those of rlhf__chain_log_open. [main]
rlhf_status rlhf__chained_open(struct rlhf__run *, const struct rlhf__folder *to, int64_t keep,
                               struct rlhf__error *err);

// Append the link of the phase r->count.phase, before its metrics are flushed. If p is NULL, the
// link is for the row of held-out responses before the first phase. [main]
rlhf_status rlhf__chained_phase(const struct rlhf__run *, const struct rlhf__phase *p,
                                struct rlhf__error *err);

#endif
