// reward_books.h: what asking one reward came to: time, rows that failed, rows asked again.
#ifndef RLHF_HOST_REWARD_BOOKS_H
#define RLHF_HOST_REWARD_BOOKS_H

#include "base/log.h"

struct rlhf__reward_books {
    double seconds;     // in its calls
    int64_t failures;   // rows that it could not score, each time that it could not
    int64_t retries;    // rows that it was asked about again, each time
    int64_t unscored;   // rows that it had not scored in the end
    int64_t not_finite; // rows that rewards.nan_policy zero or drop took away from it
};

// *to grows by b. [any]
void rlhf__reward_books_add(struct rlhf__reward_books *to, const struct rlhf__reward_books *b);

// Set the metrics <owner>/time, /failures and /retries; owner is "rewards/<name>" or "judge".
// [step]
void rlhf__reward_books_report(const struct rlhf__reward_books *b, const char *owner,
                               void (*metric)(void *ctx, const char *name, double value),
                               void *ctx);

// A line of failures and one of numbers that were not finite, where there were any: "reward NAME:
// ..." [any]
void rlhf__reward_books_say(const struct rlhf__reward_books *b, const char *name,
                            struct rlhf__log *log);

#endif
