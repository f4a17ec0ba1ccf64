// tally.h: means of metrics that some rows give and others do not.
#ifndef RLHF_PLUGINS_PROCESS_TALLY_H
#define RLHF_PLUGINS_PROCESS_TALLY_H

#include <rlhf/host.h>

enum { RLHF__TALLY_MOST = 64, RLHF__TALLY_NAME = 96 };

struct rlhf__tally {
    uint32_t n, left_out; // names; values whose name had no room
    struct {
        double sum;
        uint64_t count;
        char name[RLHF__TALLY_NAME];
    } of[RLHF__TALLY_MOST];
};

// One more value of `name`, shorter than RLHF__TALLY_NAME. [any]
void rlhf__tally_add(struct rlhf__tally *, const char *name, double value);

// All values of another one, in its order. [any]
void rlhf__tally_merge(struct rlhf__tally *, const struct rlhf__tally *);

// Each name's mean over the values it was given, as a metric with their number as its weight; a
// warning where there were too many names. [step]
void rlhf__tally_report(const struct rlhf__tally *, const rlhf_host *);

#endif
