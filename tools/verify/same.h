// same.h: compares a recomputed phase, to the bit, with the recorded one: its digests in the chain,
// metrics.jsonl, rollouts.jsonl and the checkpoint.
#ifndef RLHF_TOOLS_VERIFY_SAME_H
#define RLHF_TOOLS_VERIFY_SAME_H

#include "feed/recorded.h"
#include "history/chain_file.h"
#include "verify/faults.h"

// The phases to compare. The files of the recomputed phases are in the folder `again`.
struct rlhf__same {
    const char *run, *again;
    const struct rlhf__chain_file *chain, *chain_again;
    // Positioned at the phase; without lines if a file is missing.
    struct rlhf__recorded *rows, *rows_again;
    int32_t trusted; // 1: scores, or an environment's answers, came from the record
};

// Compare the phase, and append every difference to the faults. Errors: RLHF_E_INVALID, RLHF_E_IO,
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__same_phase(const struct rlhf__same *, int64_t phase, struct rlhf__faults *,
                             struct rlhf__error *err);

// The same, but only for the checkpoint of the phase. [main]
rlhf_status rlhf__same_checkpoint(const struct rlhf__same *, int64_t phase, struct rlhf__faults *,
                                  struct rlhf__error *err);

#endif
