// clock.h: a clock to measure durations, and the time of day.
#ifndef RLHF_CORE_BASE_CLOCK_H
#define RLHF_CORE_BASE_CLOCK_H

#include <time.h>

// Monotonic seconds since an arbitrary point in time. [any]
static inline double rlhf__seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#define RLHF__UTC_BYTES 25

// Write the time to out in ISO 8601 and UTC: "2026-11-27T01:20:16.123Z". Async-signal-safe, which
// gmtime_r() is not. [any]
void rlhf__utc(char out[RLHF__UTC_BYTES]);

// The same for a point in time. [any]
void rlhf__utc_of(const struct timespec *t, char out[RLHF__UTC_BYTES]);

#endif
