// again.h: computes one phase of a finished run once more, from the run's files. The results are
// written as files of the same form, into a folder of the caller.
#ifndef RLHF_TOOLS_RECOMPUTE_AGAIN_H
#define RLHF_TOOLS_RECOMPUTE_AGAIN_H

#include "base/env.h"
#include "base/folder.h"
#include "feed/recorded.h"

#define RLHF__AGAIN_BEFORE "before" // the checkpoints in the folder
#define RLHF__AGAIN_AFTER  "after"

struct rlhf__again {
    const struct rlhf__env *env;
    const char *run, *algo; // algo NULL: as the run's config.json names it
    const char *backend;    // "reference", "cpu", ...
    int64_t threads;        // 0: all cores
    int32_t trust_run, changed_plugins, changed_inputs;
    int32_t reserved;
};

// How a phase went.
struct rlhf__again_told {
    int32_t samples;    // 1: the algorithm samples responses, so that the phase needs recorded ones
    int32_t lacks_rows; // 1: responses are not recorded, so nothing was computed
    int32_t reads_start; // 1: the phase begins at a checkpoint; 0: as the run began
    int32_t reserved;
};

// Compute phase `phase` (from 1). The first phase begins as the run did; every other phase begins
// at the checkpoint of the phase before it. The recorded rows must be positioned at the phase. If
// the phase begins as the run did, a checkpoint of that beginning is also written to the folder.
// Rewards, judges and sinks are not opened. Errors: those of resuming the run. [main]
rlhf_status rlhf__again_phase(const struct rlhf__again *, int64_t phase,
                              struct rlhf__recorded *rows, const struct rlhf__folder *out,
                              struct rlhf__again_told *told, struct rlhf__error *err);

#endif
