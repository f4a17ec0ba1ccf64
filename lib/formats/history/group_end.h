// group_end.h: where the runs of a group end: the mean of a metric over them, its range, and its
// standard error.
#ifndef RLHF_FORMATS_HISTORY_GROUP_END_H
#define RLHF_FORMATS_HISTORY_GROUP_END_H

#include "history/judged_run.h"

enum rlhf__end_error {
    RLHF__ERROR_NONE,  // not known
    RLHF__ERROR_SEEDS, // of the mean over runs with different seeds
    RLHF__ERROR_ROWS   // of one run: over the rows of its last phases
};

struct rlhf__group_end {
    double mean, low, high, error;
    int64_t n;        // runs that have the metric
    int64_t seeds;    // different values of run.seed among them
    int32_t error_by; // enum rlhf__end_error
    int32_t reserved;
};

// Two metrics that are computed, not read: the seconds of all phases together, and the number of
// phases done.
#define RLHF__END_SECONDS "time, s"
#define RLHF__END_PHASES  "phases"

// run[n] are the runs of one group. The end of a run is the mean of the last tenth of its phases,
// as in the verdict (trend.h). [any]
struct rlhf__group_end rlhf__group_end_of(const struct rlhf__judged_run *const *run, size_t n,
                                          const char *metric);

// 1 if there are at least two groups, each with at least two seeds, and no two ranges overlap.
// [any]
int rlhf__group_ends_apart(const struct rlhf__group_end *, size_t n);

#endif
