// phase.h: what one phase of a run works with. What it does is phase_run.h's; everything around it,
// the algorithm's phase_end() included, is the loop's.
#ifndef RLHF_HOST_PHASE_H
#define RLHF_HOST_PHASE_H

#include "learn/learner.h"
#include "run/count.h"
#include "run/feed.h"
#include "run/report.h"

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
