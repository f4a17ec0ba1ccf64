// clock.h: the time that durations are measured with.
#ifndef RLHF_HOST_CLOCK_H
#define RLHF_HOST_CLOCK_H

// Monotonic seconds; their zero means nothing. [any]
double rlhf__seconds(void);

#endif
