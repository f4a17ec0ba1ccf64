// combine.h: how the values that a plugin reports under one metric name become one number (enum
// rlhf_combine).
#ifndef RLHF_HOST_PLUGIN_COMBINE_H
#define RLHF_HOST_PLUGIN_COMBINE_H

#include <rlhf/host.h>

// What was reported under a name so far. Zero-initialise: nothing.
struct rlhf__combined {
    double value, weight; // value: the number; weight: of a mean
    double sum;           // of weight times value
    int32_t combine;      // enum rlhf_combine, of the first report
    uint32_t n;           // reports that count; a mean without weight does not
};

// Add a report. Returns 0, and ignores the report, if an earlier one was to be combined
// differently. [any]
int rlhf__combine_add(struct rlhf__combined *to, double value, double weight, int32_t combine);

// Add what was reported after `to`. 0 as above. [any]
int rlhf__combine_merge(struct rlhf__combined *to, const struct rlhf__combined *later);

// "mean", "sum", "last", "max", "min"; NULL for any other number. [any]
const char *rlhf__combine_name(int32_t combine);

// What is wrong with a report, as text to follow the metric's name, or NULL. [any]
const char *rlhf__combine_fault(double weight, int32_t combine);

#endif
