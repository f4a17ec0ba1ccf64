// distribution.h: describes the distribution of numbers by their mean and, if they have few
// distinct values, by the count of each value. If there are many distinct values, quantiles replace
// the counts. All functions here are pure.
#ifndef RLHF_HOST_REPORT_DISTRIBUTION_H
#define RLHF_HOST_REPORT_DISTRIBUTION_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RLHF__DISTRIBUTION_FEW = 16,      // with at most so many distinct values, each is counted
    RLHF__DISTRIBUTION_QUANTILES = 32 // otherwise the number of intervals between quantiles
};

struct rlhf__distribution {
    size_t n;               // number of finite values; 0: the other members are not set
    double mean, deviation; // standard deviation
    int32_t counted;        // > 0: number of distinct values, each with its count; 0: quantiles
    double value[RLHF__DISTRIBUTION_QUANTILES + 1]; // ascending
    int64_t count[RLHF__DISTRIBUTION_FEW];
};

// Set *out to the distribution of the finite values of x[0..n). These values are moved to the front
// of x and sorted. [any]
void rlhf__distribution_of(double *x, size_t n, struct rlhf__distribution *out);

// Append a distribution as JSON. If it has few distinct values: {"m": mean, "n": [[value, count],
// ...]}. If it has many: {"m": mean, "s": standard deviation, "c": how many values, "q":
// quantiles}. If it is empty: null. [any]
void rlhf__distribution_json(const struct rlhf__distribution *, struct rlhf__buf *out);

#endif
