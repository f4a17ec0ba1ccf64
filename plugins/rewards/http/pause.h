// pause.h: decides when to retry a request to a service that does not answer, when to log that, and
// when to give up. Times are in seconds of any clock; the functions do not wait or read a clock.
#ifndef RLHF_REWARDS_HTTP_PAUSE_H
#define RLHF_REWARDS_HTTP_PAUSE_H

#include "http/options.h"

#include <rlhf/rng.h>

// The state of the service. A zeroed struct means that the service answers.
struct rlhf__pause {
    double since;       // time of the first failure after the last answer
    double gate;        // earliest time of the next attempt
    double last_failed; // time of the last failure
    double next_line;
    uint32_t failures; // failed attempts since the last answer; 0: the service answers
    int32_t said;      // 1: the failure was logged
};

// Record the failure of an attempt that began at `began`. If the attempt began before the last
// recorded failure, it does not count as a further failure. `retry_after` is the number of seconds
// that the service asked us to wait, or 0. Advances `jitter`. [any]
void rlhf__pause_failed(struct rlhf__pause *, const struct rlhf__http_options *, rlhf_rng *jitter,
                        double began, double now, double retry_after);
// Record that the service answered. If the log has reported the service's failure, returns the
// seconds since the first failed attempt, otherwise 0. [any]
double rlhf__pause_answered(struct rlhf__pause *, double now);
// 1 if the service has not answered for patience_s seconds. [any]
int rlhf__pause_over(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// The seconds until rlhf__pause_over() returns 1; at least 0. [any]
double rlhf__pause_left(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// 1 if a line should be logged now: after the first second, then every minute. [any]
int rlhf__pause_line_due(struct rlhf__pause *, double now);

#endif
