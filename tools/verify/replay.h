// replay.h: recomputes phases of a run to the bit, rewards included, and compares them with the
// recorded phases.
#ifndef RLHF_TOOLS_VERIFY_REPLAY_H
#define RLHF_TOOLS_VERIFY_REPLAY_H

#include "verify/recompute_again.h"
#include "verify/same.h"

// What to recompute, and how.
struct rlhf__replay_job {
    struct rlhf__again again;
    const struct rlhf__chain_file *chain;
    int64_t first, last; // phases
    int32_t trusted;     // 1: scores, or the environment's answers, come from rollouts.jsonl
    int32_t shows;       // 1: print each phase
    // 1: another backend recomputes the phases from the record, and results are compared within
    // limits (within_limits.h)
    int32_t limits;
};

// What the recomputation found out.
struct rlhf__replay_told {
    int64_t from;               // phase of the checkpoint where it began; 0: the run's beginning
    int64_t recomputed, equal;  // phases
    json_t *begin, *manifest;   // of the recomputed phases; new references
    json_t *compared;           // within limits: the comparisons of each phase; a new reference
    int64_t left;               // phases that were asked for and cannot be recomputed
    struct rlhf__buf left_text; // why
};

// Read the first line of the chain and the manifest of the recomputed phases in `dir`, and check
// that plugins, inputs and settings are those of the run. If the results must be equal to the bit,
// also check the arithmetic. Errors: RLHF_E_INVALID with one sentence. [main]
rlhf_status rlhf__replay_begin(const struct rlhf__replay_job *, const char *dir,
                               struct rlhf__replay_told *, struct rlhf__error *err);

// Check that the run can be recomputed here: version, arithmetic, plugins and inputs. Errors:
// RLHF_E_INVALID with one sentence, and those of resuming the run. [main]
rlhf_status rlhf__replay_check(const struct rlhf__replay_job *, struct rlhf__replay_told *,
                               struct rlhf__error *err);

// Recompute the phases and append what differs to the faults. [main]
rlhf_status rlhf__replay_run(const struct rlhf__replay_job *, struct rlhf__replay_told *,
                             struct rlhf__faults *, struct rlhf__error *err);

#endif
