// metrics.h: what the episodes of a phase were like, as numbers.
#ifndef RLHF_HOST_EPISODE_METRICS_H
#define RLHF_HOST_EPISODE_METRICS_H

#include "batch/rows.h"
#include "sample/experience.h"

// Set episodes/turns and the others that docs/metrics.md defines, for rows of several turns. If
// counts is NULL, nothing was counted, because answers came from a record. [any]
void rlhf__episode_metrics(const struct rlhf__rows *, const struct rlhf__episode_counts *,
                           void (*metric)(void *ctx, const char *name, double value), void *ctx);

// Returns "done" for RLHF_EPISODE_DONE, and so on. [any]
const char *rlhf__episode_end_name(uint8_t end);

#endif
