// trend.h: the first and last values of a series, its noise, whether it moved, and since which
// phase it has been above or below a limit. All functions accept an empty series.
#ifndef RLHF_FORMATS_VERDICT_TREND_H
#define RLHF_FORMATS_VERDICT_TREND_H

#include "verdict/series.h"

enum {
    RLHF__TREND_FEWEST = 5, // a series with fewer values never counts as moved
    RLHF__TREND_MOST = 20   // the mean at the end is over at most this many values
};

// The first value, which is from the untrained policy, and the mean of the last tenth of the values
// (at least 1 and at most RLHF__TREND_MOST values). For an empty series, both are NaN and
// `width` is 0.
struct rlhf__first_last {
    double first, last;
    int64_t width; // number of values in `last`
};
struct rlhf__first_last rlhf__trend_ends(const struct rlhf__series *);

// Returns the standard deviation of a single value, estimated from the steps between adjacent
// values. The estimate is 1.05 times the median size of a step. If that median is 0, it is the
// square root of half the mean squared step. Returns 0 if there are fewer than two values. If
// memory runs out, returns infinity, so that no series counts as moved. [any]
double rlhf__trend_noise(const struct rlhf__series *);

// Returns 1 if the series rose and -1 if it fell, by more than three standard errors of the
// difference between its last and its first value. Otherwise returns 0.
int rlhf__trend_moved(const struct rlhf__series *);
// The same, with this standard deviation of a single value.
int rlhf__trend_moved_by(const struct rlhf__series *, double noise);

// The longest run of values at the end of a series that are all above the limit (trend_above) or
// all below it (trend_below). `phase` is the phase of the first of them, and n is their number. If
// the last value is not beyond the limit, both are 0. [any]
struct rlhf__held {
    int64_t phase, n;
};
struct rlhf__held rlhf__trend_above(const struct rlhf__series *, double limit);
struct rlhf__held rlhf__trend_below(const struct rlhf__series *, double limit);

// _sum: returns the sum of the values. _mean_of_first: returns the mean of the first n values (n >=
// 1). _median: returns the median. All return 0 for an empty series.
double rlhf__trend_sum(const struct rlhf__series *);
double rlhf__trend_mean_of_first(const struct rlhf__series *, int64_t n);
double rlhf__trend_mean(const struct rlhf__series *);
// Returns the root of the mean square of the first n values (n >= 1) or, if n is negative, of the
// last -n values; 0 for an empty series.
double rlhf__trend_rms(const struct rlhf__series *, int64_t n);
double rlhf__trend_median(const struct rlhf__series *);

#endif
