// count.h: how far a run is.
//
// The loop counts and a checkpoint restores; everything else reads.
#ifndef RLHF_HOST_COUNT_H
#define RLHF_HOST_COUNT_H

#include <stdint.h>

// `phase` is also the number of the phase at hand, from 0, as plugins get it; messages and files
// count from 1 (phase + 1).
struct rlhf__count {
    int64_t phase;       // phases done
    int64_t first_phase; // phases done before this process
    int64_t phases;      // of the whole run
    int64_t horizon;     // phases that the learning rate is planned for, at least `phases`
    int64_t sequences;   // seen so far: the number of the next one
    int64_t flat_phases; // phases in which all responses to each prompt were paid the same
    // With an adapter: phases at the start of the run in which it did not move; 0 once it has.
    int64_t still_phases;
    int32_t stop; // 1: early stopping said so
    int32_t reserved;
};

#endif
