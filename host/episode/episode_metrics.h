// episode_metrics.h: the metrics of the episodes of a phase.
#ifndef RLHF_HOST_EPISODE_EPISODE_METRICS_H
#define RLHF_HOST_EPISODE_EPISODE_METRICS_H

#include "batch/rows.h"
#include "sample/experience.h"

// Report episodes/turns and the other metrics of episodes (docs/metrics.md) for rows of several
// turns. If the environment's answers come from a record, the counts are NULL, and the metrics that
// need them are left out. [any]
void rlhf__episode_metrics(const struct rlhf__rows *, const struct rlhf__episode_counts *,
                           void (*metric)(void *ctx, const char *name, double value), void *ctx);

// Returns "done" for RLHF_EPISODE_DONE, and so on. [any]
const char *rlhf__episode_end_name(uint8_t end);

#endif
