// phase.h: one phase of a run: its rows, what is said of them before they are learned from, the
// updates, and what is held out. Everything around it, the algorithm's phase_end() included, is the
// loop's.
#ifndef RLHF_HOST_PHASE_H
#define RLHF_HOST_PHASE_H

#include "learn/learner.h"
#include "run/count.h"
#include "run/feed.h"
#include "run/report.h"

// The parts of a run that a phase works with.
struct rlhf__phase {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    const struct rlhf__count *count; // as it was before: count->phase is the phase's number, from 0
    struct rlhf__feed *feed;
    struct rlhf__learner *learner;
    struct rlhf__report *report;
    struct rlhf__experience x; // the phase's rows: zeroed before, released by the caller
};

// Fill p->x and learn from it. What can fail for reasons outside (a reward, a judge, a file) comes
// before the first step, so that the weights are still those of the boundary; p->x.drawn is right
// after failures too. [step]
rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err);

// The second half of it: advantages and epochs of minibatches over p->x, whose numbers are there.
// [step]
rlhf_status rlhf__phase_update(struct rlhf__phase *p, struct rlhf__error *err);

#endif
