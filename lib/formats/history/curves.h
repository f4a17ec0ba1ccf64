// curves.h: the metrics of a run as curves of at most a few hundred points, read in one pass and in
// memory that does not depend on the number of phases.
//
// With few phases a point is a phase. With more, the phases are divided into equal buckets, the
// same ones for all runs; a bucket keeps the mean, the least and the largest value, so that no
// spike is lost.
#ifndef RLHF_FORMATS_HISTORY_CURVES_H
#define RLHF_FORMATS_HISTORY_CURVES_H

#include "history/run_lines.h"
#include "history/series.h"

// The phases of one or several runs, and how they are divided.
struct rlhf__curve_range {
    int64_t first, last; // last < first: no phases
    int64_t n_metrics;   // of all runs together, counted in their first and last lines
    int64_t n_points;    // buckets
    int32_t exact;       // 1: a bucket is a phase
    int32_t reserved;
};

struct rlhf__curve_point {
    double sum, lo, hi;
    int64_t last, n; // the last phase in the bucket; values in it, 0 = none
};

struct rlhf__curve {
    char *name;
    struct rlhf__curve_point *point; // [range.n_points]
    double first, last;              // values
    double sum;
    int64_t n; // values
};

struct rlhf__curves {
    struct rlhf__curve_range range;
    struct rlhf__curve *all; // [n], by name
    size_t n, cap;
    int64_t first, last; // phases of this run; both -1 without any
};

// Add the phases and metrics of a run to a range, which starts as RLHF__CURVE_RANGE_INIT; then
// divide it. [any]
#define RLHF__CURVE_RANGE_INIT                                                                     \
    { 0, -1, 0, 0, 0, 0 }
void rlhf__curve_range_add(struct rlhf__curve_range *range, struct rlhf__run_files *run);
void rlhf__curve_range_divide(struct rlhf__curve_range *range);

// Read metrics.jsonl of a run into curves, and the metrics that rules read into *series, which the
// caller has zeroed. Values that are not finite are left out. A line is skipped if its phase is
// outside the range, or is not greater than the phase of the line before. A file with too many
// metrics is cut. Each of these adds a sentence to the run's trouble. Errors: RLHF_E_NOMEM. Release
// both, also after a failure. [any]
rlhf_status rlhf__curves_read(struct rlhf__run_files *run, const struct rlhf__curve_range *range,
                              struct rlhf__curves *out, struct rlhf__series_set *series,
                              struct rlhf__error *err);
void rlhf__curves_finish(struct rlhf__curves *c);

// The curve of a name, or NULL. Borrowed. [any]
const struct rlhf__curve *rlhf__curves_find(const struct rlhf__curves *c, const char *name);

#endif
