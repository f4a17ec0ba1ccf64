// schedule.h: the learning-rate schedule.
#ifndef RLHF_HOST_LEARN_SCHEDULE_H
#define RLHF_HOST_LEARN_SCHEDULE_H

#include "config/schema.h"

// Returns the learning-rate factor of phase `phase` (0 = first) in a run of `horizon` phases.
// Depends only on the arguments.
// - During the warm-up: (phase + 1) / warmup. With RLHF__WARMUP_FROM_ZERO: phase / warmup.
// - After it: c->schedule decays from 1 to c->final_scale, which it reaches at the horizon, i.e.
//   one step after the last phase. [any]
double rlhf__schedule_factor(const struct rlhf__optim_config *c, int64_t phase, int64_t horizon);

#endif
