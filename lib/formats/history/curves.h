// curves.h: the metrics of a run as curves of at most a few hundred points. metrics.jsonl is read
// in one pass, and the memory needed does not depend on the number of phases.
//
// If there are few phases, each point is a phase. Otherwise the phases are divided into equal
// buckets, which are the same for all runs. Each bucket has the mean, the least and the largest
// value, so that spikes stay visible.
#ifndef RLHF_FORMATS_HISTORY_CURVES_H
#define RLHF_FORMATS_HISTORY_CURVES_H

#include "history/run_lines.h"
#include "verdict/series.h"

// The phases of one or more runs, and how they are divided into buckets.
struct rlhf__curve_range {
    int64_t first, last; // last < first: there are no phases
    int64_t n_metrics;   // summed over all runs; of the first and the last line, the larger count
    int64_t n_points;    // number of buckets
    int32_t exact;       // 1: each bucket is one phase
};

struct rlhf__curve_point {
    double sum, lo, hi;
    int64_t last, n; // the last phase in the bucket; the number of values in it, 0 = none
};

struct rlhf__curve {
    char *name;
    struct rlhf__curve_point *point; // [range.n_points]
    double first, last;              // the first and the last value
    double sum;
    int64_t n; // number of values
};

struct rlhf__curves {
    struct rlhf__curve_range range;
    struct rlhf__curve *all; // [n], sorted by name
    size_t n, cap;
    int64_t first, last; // phases of this run; both are -1 if it has none
};

// Initialize a range with RLHF__CURVE_RANGE_INIT. _add adds the phases and metrics of a run to the
// range. Call _divide after the last run; it divides the range into buckets. [any]
#define RLHF__CURVE_RANGE_INIT                                                                     \
    { 0, -1, 0, 0, 0 }
void rlhf__curve_range_add(struct rlhf__curve_range *range, struct rlhf__run_files *run);
void rlhf__curve_range_divide(struct rlhf__curve_range *range);

// Read metrics.jsonl of a run: all metrics into *out, and the metrics that the rules need into
// *series, which the caller has zeroed. Ignores values that are not finite, and lines whose phase
// is after the range. Skips a line if its phase is before the range or does not exceed the previous
// line's phase. Leaves out metrics if there are too many, or if a name is too long. The run's
// trouble reports skipped lines and left-out metrics. Errors: RLHF_E_NOMEM. Release *out and
// *series, even after a failure. [any]
rlhf_status rlhf__curves_read(struct rlhf__run_files *run, const struct rlhf__curve_range *range,
                              struct rlhf__curves *out, struct rlhf__series_set *series,
                              struct rlhf__error *err);
void rlhf__curves_finish(struct rlhf__curves *c);

// The curve with this name, or NULL. Borrowed. [any]
const struct rlhf__curve *rlhf__curves_find(const struct rlhf__curves *c, const char *name);

#endif
