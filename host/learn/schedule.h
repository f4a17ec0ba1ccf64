// schedule.h: the learning-rate schedule.
#ifndef RLHF_HOST_LEARN_SCHEDULE_H
#define RLHF_HOST_LEARN_SCHEDULE_H

#include "config/schema.h"

// Returns the learning-rate factor of a phase (0 = first). `horizon` is the number of phases that
// the schedule spans. The result depends only on the arguments.
// - During the warm-up: (phase + 1) / warmup. With RLHF__WARMUP_FROM_ZERO: phase / warmup.
// - After the warm-up: 1 with a constant schedule. Otherwise the factor decays from 1 to
//   c->final_scale, which it reaches at the horizon, i.e. one phase after the last. [any]
double rlhf__schedule_factor(const struct rlhf__optim_config *c, int64_t phase, int64_t horizon);

#endif
