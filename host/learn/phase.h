// phase.h: how far a run is, and what one phase of it works with. run/phase_run.h runs a phase; the
// loop does everything around it, the algorithm's phase_end() included.
#ifndef RLHF_HOST_PHASE_H
#define RLHF_HOST_PHASE_H

#include "learn/cast.h"
#include "learn/learner.h"
#include "sample/experience.h"

struct rlhf__feed;
struct rlhf__report;

// The loop counts and a checkpoint restores; everything else reads. `phase` is also the number of
// the current phase, from 0, as plugins get it; messages and files count from 1 (phase + 1).
struct rlhf__count {
    int64_t phase;       // phases done
    int64_t first_phase; // phases done before this process
    int64_t phases;      // of the whole run
    int64_t horizon;     // phases that the learning rate is planned for, at least `phases`
    int64_t sequences;   // seen so far: the number of the next one
    int64_t flat_phases; // phases in which all responses to each prompt had the same reward
    // With an adapter: phases at the start of the run in which it did not move; 0 once it has.
    int64_t still_phases;
    int32_t stop; // 1: early stopping ends the run
    int32_t reserved;
};

// Parts of a run, and the rows of the phase.
struct rlhf__phase {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    const struct rlhf__count *count; // as it was before: count->phase is the phase's number, from 0
    struct rlhf__feed *feed;
    struct rlhf__learner *learner;
    struct rlhf__report *report;
    int32_t has_adapter, reserved;
    double adapter_norm; // how far the adapter went (learn/moved.h), once the updates are done
    struct rlhf__experience x; // the phase's rows: zeroed before, released by the caller
};

#endif
