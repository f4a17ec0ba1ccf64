// reward_books.c: see reward_books.h.
#include "sample/reward_books.h"

#include <stdio.h>

void rlhf__reward_books_add(struct rlhf__reward_books *to, const struct rlhf__reward_books *b) {
    to->seconds += b->seconds;
    to->failures += b->failures;
    to->retries += b->retries;
}

void rlhf__reward_books_report(const struct rlhf__reward_books *b, const char *owner,
                               void (*metric)(void *ctx, const char *name, double value),
                               void *ctx) {
    char name[256];
    snprintf(name, sizeof name, "%s/time", owner);
    metric(ctx, name, b->seconds);
    snprintf(name, sizeof name, "%s/failures", owner);
    metric(ctx, name, (double)b->failures);
    snprintf(name, sizeof name, "%s/retries", owner);
    metric(ctx, name, (double)b->retries);
}

void rlhf__reward_books_say(const struct rlhf__reward_books *b, const char *name,
                            struct rlhf__log *log) {
    if (b->failures == 0) return;
    rlhf__logf(log, RLHF_LOG_WARN, "%s: %lld row%s could not be scored, %lld asked again", name,
               (long long)b->failures, b->failures == 1 ? "" : "s", (long long)b->retries);
}
