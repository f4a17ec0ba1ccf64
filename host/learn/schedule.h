// schedule.h: the learning-rate factor of a phase, a pure function; nothing to save.
#ifndef RLHF_HOST_SCHEDULE_H
#define RLHF_HOST_SCHEDULE_H

#include "config/schema.h"

// Factor of phase `phase` (0 = first) of a run of `horizon` phases: (phase + 1) / warmup during the
// warm-up (phase / warmup with RLHF__WARMUP_FROM_ZERO), then the decay of c->schedule from 1 to
// c->final_scale. The decay runs from the end of the warm-up to the horizon, which itself is never
// reached: the last phase is one step before. [any]
double rlhf__schedule_factor(const struct rlhf__optim_config *c, int64_t phase, int64_t horizon);

#endif
