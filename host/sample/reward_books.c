// reward_books.c: see reward_books.h.
#include "sample/reward_books.h"

#include <stdio.h>

void rlhf__reward_books_add(struct rlhf__reward_books *to, const struct rlhf__reward_books *b) {
    to->seconds += b->seconds;
    to->failures += b->failures;
    to->retries += b->retries;
    to->unscored += b->unscored;
    to->not_finite += b->not_finite;
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
    char rows[64] = "every row was scored in the end";
    if (b->unscored)
        snprintf(rows, sizeof rows, "%lld row%s stayed without a score", (long long)b->unscored,
                 b->unscored == 1 ? "" : "s");
    if (b->failures)
        rlhf__logf(log, RLHF_LOG_WARN,
                   "%s: %s (rows that a try could not score, tries added up: %lld; asked again: "
                   "%lld)",
                   name, rows, (long long)b->failures, (long long)b->retries);
    if (b->not_finite)
        rlhf__logf(log, RLHF_LOG_INFO, "%s: %lld row%s got no finite number (rewards.nan_policy)",
                   name, (long long)b->not_finite, b->not_finite == 1 ? "" : "s");
}
