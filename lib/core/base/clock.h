// clock.h: a clock to measure durations.
#ifndef RLHF_CORE_BASE_CLOCK_H
#define RLHF_CORE_BASE_CLOCK_H

#include <time.h>

// Monotonic seconds since an arbitrary point in time. [any]
static inline double rlhf__seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
