// clock.h: a clock to measure durations.
#ifndef RLHF_HOST_CLOCK_H
#define RLHF_HOST_CLOCK_H

// Monotonic seconds since an arbitrary point in time. [any]
double rlhf__seconds(void);

#endif
