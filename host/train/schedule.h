// schedule.h: the learning-rate factor of a phase, a pure function; nothing to save.
#ifndef RLHF_HOST_SCHEDULE_H
#define RLHF_HOST_SCHEDULE_H

#include <stdint.h>

enum rlhf__schedule_kind {
    RLHF__SCHEDULE_CONSTANT = 0,
    RLHF__SCHEDULE_LINEAR = 1, // from 1 to final_scale
    RLHF__SCHEDULE_COSINE = 2
};

struct rlhf__schedule {
    int32_t kind, reserved;
    int64_t warmup;     // phases of linear warm-up, factor (phase + 1) / warmup
    double final_scale; // factor at the end
};

// Factor of phase `phase` (0 = first) of a run of `horizon` phases. The decay runs from the end of
// the warm-up to the horizon, which itself is never reached: the last phase is one step before it. [any]
double rlhf__schedule_phase(const struct rlhf__schedule *, int64_t phase, int64_t horizon);

// The same for a run measured in passes over the data: progress in [0, 1]. The warm-up is still in
// phases and multiplies the decay. [any]
double rlhf__schedule_progress(const struct rlhf__schedule *, int64_t phase, double progress);

#endif
