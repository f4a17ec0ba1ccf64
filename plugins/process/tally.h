// tally.h: means of metrics that only some rows report.
#ifndef RLHF_PLUGINS_PROCESS_TALLY_H
#define RLHF_PLUGINS_PROCESS_TALLY_H

#include <rlhf/host.h>

enum { RLHF__TALLY_MOST = 64, RLHF__TALLY_NAME = 96 };

struct rlhf__tally {
    // number of names; number of values that were dropped because all slots for names were taken
    uint32_t n, left_out;
    struct {
        double sum;
        uint64_t count;
        char name[RLHF__TALLY_NAME];
    } of[RLHF__TALLY_MOST];
};

// Adds a value of `name`, which must be shorter than RLHF__TALLY_NAME. [any]
void rlhf__tally_add(struct rlhf__tally *, const char *name, double value);

// Adds all values of another tally, in the order of that tally. [any]
void rlhf__tally_merge(struct rlhf__tally *, const struct rlhf__tally *);

// Reports each name as a metric: the mean of the name's values, with their number as the weight.
// Warns if there were too many names. [step]
void rlhf__tally_report(const struct rlhf__tally *, const rlhf_host *);

#endif
