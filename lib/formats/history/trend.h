// trend.h: where a series began and ended, its noise, whether it moved, and since which phase it
// has been above or below a limit. An empty series is allowed everywhere.
#ifndef RLHF_FORMATS_HISTORY_TREND_H
#define RLHF_FORMATS_HISTORY_TREND_H

#include "history/series.h"

enum {
    RLHF__TREND_FEWEST = 5, // a series of fewer values never counts as moved
    RLHF__TREND_MOST = 20   // phases in the mean at the end
};

// The first value, which the untrained policy caused, and the mean of the last tenth of the values,
// at least 1 and at most RLHF__TREND_MOST. NaN and 0 for an empty series.
struct rlhf__first_last {
    double first, last;
    int64_t width; // values in `last`
};
struct rlhf__first_last rlhf__trend_ends(const struct rlhf__series *);

// The standard deviation of a single value, estimated as 1.05 times the median step from one value
// to the next. If that median is 0, it is the root of half the mean squared step. Returns 0 for
// fewer than two values. Returns infinity if out of memory, so that no series counts as moved.
// [any]
double rlhf__trend_noise(const struct rlhf__series *);

// Returns 1 if the series rose and -1 if it fell, by more than three standard errors of the
// difference between its ends. Otherwise returns 0.
int rlhf__trend_moved(const struct rlhf__series *);

// Returns the first phase since which all values are above (below) the limit, and the number of
// these values. Both are 0 if the last value is not above (below) the limit. [any]
struct rlhf__held {
    int64_t phase, n;
};
struct rlhf__held rlhf__trend_above(const struct rlhf__series *, double limit);
struct rlhf__held rlhf__trend_below(const struct rlhf__series *, double limit);

// The sum of the values, the mean of the first n (n >= 1), and the median. All are 0 for an empty
// series.
double rlhf__trend_sum(const struct rlhf__series *);
double rlhf__trend_mean_of_first(const struct rlhf__series *, int64_t n);
double rlhf__trend_median(const struct rlhf__series *);

#endif
