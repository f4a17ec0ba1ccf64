// reward_metrics.h: what a reward reports with host->metric while it is asked about the rows of a
// phase, in one call or several.
#ifndef RLHF_HOST_REWARD_METRICS_H
#define RLHF_HOST_REWARD_METRICS_H

#include "plugin/metric_names.h"
#include "plugin/services.h"

// Metrics that a reward may report in a phase; those beyond are left out.
enum { RLHF__MOST_METRICS = 1024 };

// A number that was reported.
struct rlhf__reward_metric {
    char name[RLHF__METRIC_NAME]; // as the run knows it
    double value, last;           // of the current call; of the last finished one
    double sum, weight;           // of finished calls
    int32_t calls;                // that reported it
    int32_t now;                  // 1: the current call did
};

// Zero-initialise; release with rlhf__reward_metrics_finish.
struct rlhf__reward_metrics {
    const struct rlhf__instance *reward;
    struct rlhf__reward_metric *item; // [n]
    size_t n, cap;
    int32_t warned; // 1: about metrics beyond RLHF__MOST_METRICS
    int32_t reserved;
};

// The next call of the reward begins: what it reports is kept here. [step]
void rlhf__reward_metrics_begin(struct rlhf__reward_metrics *m,
                                const struct rlhf__instance *reward);

// It is over, and scored so many rows; what was reported by one that scored none is forgotten.
// [step]
void rlhf__reward_metrics_end(struct rlhf__reward_metrics *m, uint32_t rows);

// Pass on to the run what was reported: as it is where one call reported it, else the mean over
// calls weighted by their rows. [step]
void rlhf__reward_metrics_flush(struct rlhf__reward_metrics *m);
void rlhf__reward_metrics_finish(struct rlhf__reward_metrics *m); // accepts a zeroed one [step]

#endif
