// pause.h: when a request to a service that does not answer is retried, when that is reported, and
// when it is given up. Times are seconds of any one clock; nothing here waits or reads a clock.
#ifndef RLHF_REWARDS_HTTP_PAUSE_H
#define RLHF_REWARDS_HTTP_PAUSE_H

#include "http/options.h"

#include <rlhf/rng.h>

// Zeroed: the service answers.
struct rlhf__pause {
    double since;       // of the first failure after the last answer
    double gate;        // the earliest next try
    double last_failed; // when
    double next_line;
    uint32_t failures; // failed tries since the last answer; 0: it answers
    int32_t said;      // 1: a line was logged
};

// A try that began at `began` failed; if it began before the last failure, it is not counted
// separately. retry_after: seconds the service asked for, 0 = none. jitter is advanced. [any]
void rlhf__pause_failed(struct rlhf__pause *, const struct rlhf__http_options *, rlhf_rng *jitter,
                        double began, double now, double retry_after);
// The service answered. Returns the seconds since the first failure if a line was logged about it,
// otherwise 0. [any]
double rlhf__pause_answered(struct rlhf__pause *, double now);
// 1 if patience_s is over. [any]
int rlhf__pause_over(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// Seconds until then; at least 0. [any]
double rlhf__pause_left(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// 1 if a line is due in the log: after the first second, then each minute. [any]
int rlhf__pause_line_due(struct rlhf__pause *, double now);

#endif
