// distribution.h: how numbers are distributed: their mean, and either each value with its count or
// quantiles. Pure functions.
#ifndef RLHF_HOST_DISTRIBUTION_H
#define RLHF_HOST_DISTRIBUTION_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RLHF__DISTRIBUTION_FEW = 16,      // different values that are counted one by one; with more,
    RLHF__DISTRIBUTION_QUANTILES = 32 // so many intervals lie between the quantiles
};

struct rlhf__distribution {
    size_t n;               // finite numbers; 0: the rest is not set
    double mean, deviation; // standard deviation
    int32_t counted;        // > 0: so many different values, with their counts; 0: quantiles
    int32_t reserved;
    double value[RLHF__DISTRIBUTION_QUANTILES + 1]; // ascending
    int64_t count[RLHF__DISTRIBUTION_FEW];
};

// Set *out to the distribution of the finite values of x[0..n). They are moved to the front of x
// and sorted. [any]
void rlhf__distribution_of(double *x, size_t n, struct rlhf__distribution *out);

// Append a distribution as JSON: null, {"m": mean, "n": [[value, count], ...]}, or {"m": mean, "s":
// standard deviation, "q": [...]}. [any]
void rlhf__distribution_json(const struct rlhf__distribution *, struct rlhf__buf *out);

#endif
