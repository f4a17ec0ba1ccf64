// combine.h: combines the values that plugins report under the same metric name into one number
// (enum rlhf_combine).
#ifndef RLHF_HOST_PLUGIN_COMBINE_H
#define RLHF_HOST_PLUGIN_COMBINE_H

#include <rlhf/host.h>

// The values reported under a name so far. Zero-initialize for none.
struct rlhf__combined {
    double value, weight; // value: the combined number; weight: total weight of a mean
    double sum;           // sum of weight * value
    int32_t combine;      // enum rlhf_combine of the first report
    uint32_t n;           // number of reports that count; for a mean, reports of weight 0 do not
};

// Add a report. If an earlier report has a different `combine`, ignores this report and returns 0.
// [any]
int rlhf__combine_add(struct rlhf__combined *to, double value, double weight, int32_t combine);

// Add the reports in `later`, which were made after those in `to`. If `later` has a different
// `combine`, ignores `later` and returns 0. [any]
int rlhf__combine_merge(struct rlhf__combined *to, const struct rlhf__combined *later);

// Returns "mean", "sum", "last", "max" or "min", or NULL for any other number. [any]
const char *rlhf__combine_name(int32_t combine);

// Returns what is wrong with a report, as text to follow the metric's name, or NULL if the report
// is valid. [any]
const char *rlhf__combine_fault(double weight, int32_t combine);

#endif
