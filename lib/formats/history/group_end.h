// group_end.h: how the runs of a group end: the mean, the range and the standard error of a metric
// over the runs.
#ifndef RLHF_FORMATS_HISTORY_GROUP_END_H
#define RLHF_FORMATS_HISTORY_GROUP_END_H

#include "history/judged_run.h"

enum rlhf__end_error {
    RLHF__ERROR_NONE,  // unknown
    RLHF__ERROR_SEEDS, // standard error of the mean over runs with different seeds
    RLHF__ERROR_ROWS   // standard error of a single run, over the rows of its last phases
};

struct rlhf__group_end {
    double mean, low, high, error;
    int64_t n;        // number of runs that have the metric
    int64_t seeds;    // number of different values of run.seed in these runs
    int32_t error_by; // enum rlhf__end_error: how the error was computed
};

// Names of two metrics that are computed, not read from files: the total time of all phases in
// seconds, and the number of phases done.
#define RLHF__END_SECONDS "time, s"
#define RLHF__END_PHASES  "phases"

// Compute the mean, the range and the standard error of a metric over run[n], the runs of one
// group. The end value of a run is the mean of the last tenth of its phases, as in the verdict
// (trend.h). [any]
struct rlhf__group_end rlhf__group_end_of(const struct rlhf__judged_run *const *run, size_t n,
                                          const char *metric);

// Returns 1 if there are at least two groups, each group has at least two seeds, and the ranges of
// the groups do not overlap. [any]
int rlhf__group_ends_apart(const struct rlhf__group_end *, size_t n);

#endif
