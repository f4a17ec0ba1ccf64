// pause.h: decides when to retry a request to a service that does not answer, when to log that, and
// when to give up. Times are seconds of any one clock; nothing here waits or reads a clock.
#ifndef RLHF_REWARDS_HTTP_PAUSE_H
#define RLHF_REWARDS_HTTP_PAUSE_H

#include "http/options.h"

#include <rlhf/rng.h>

// Zeroed means that the service answers.
struct rlhf__pause {
    double since;       // of the first failure after the last answer
    double gate;        // the earliest next try
    double last_failed; // when
    double next_line;
    uint32_t failures; // failed tries since the last answer; 0: it answers
    int32_t said;      // 1: a line was logged
};

// Record a failed attempt that began at `began`. If it began before the last failure, it is not
// counted separately. retry_after: seconds the service asked for, 0 = none. Advances jitter. [any]
void rlhf__pause_failed(struct rlhf__pause *, const struct rlhf__http_options *, rlhf_rng *jitter,
                        double began, double now, double retry_after);
// Record that the service answered. If a line was logged about the failure, returns the seconds
// since the first failed try, otherwise 0. [any]
double rlhf__pause_answered(struct rlhf__pause *, double now);
// 1 if the service has not answered for patience_s seconds. [any]
int rlhf__pause_over(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// Seconds until rlhf__pause_over() returns 1; at least 0. [any]
double rlhf__pause_left(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// 1 if a line is due in the log: after the first second, then each minute. [any]
int rlhf__pause_line_due(struct rlhf__pause *, double now);

#endif
