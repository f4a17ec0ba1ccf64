// pause.h: when a service that does not answer is asked again, when somebody is told, and when it
// is given up. Times are seconds of any one clock; nothing here waits or looks at one.
#ifndef RLHF_REWARDS_HTTP_PAUSE_H
#define RLHF_REWARDS_HTTP_PAUSE_H

#include "http/options.h"

#include <rlhf/rng.h>

// Zeroed: the service answers.
struct rlhf__pause {
    double since;       // of the first failure after the last answer
    double gate;        // nothing is asked before
    double last_failed; // when
    double next_line;
    uint32_t failures; // tries that failed since the last answer; 0: it answers
    int32_t said;      // 1: a line was logged
};

// A try that began at `began` failed; one that began before the last failure counts for none of its
// own. retry_after: seconds the service asked for, 0 = it did not. jitter moves on. [any]
void rlhf__pause_failed(struct rlhf__pause *, const struct rlhf__http_options *, rlhf_rng *jitter,
                        double began, double now, double retry_after);
// The service answered. Returns the seconds since the first failure when a line was logged of it,
// else 0. [any]
double rlhf__pause_answered(struct rlhf__pause *, double now);
// 1 when patience_s is over. [any]
int rlhf__pause_over(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// Seconds until it is; 0 and more. [any]
double rlhf__pause_left(const struct rlhf__pause *, const struct rlhf__http_options *, double now);
// 1 when a line is to be logged: after the first second, then each minute. [any]
int rlhf__pause_line_due(struct rlhf__pause *, double now);

#endif
