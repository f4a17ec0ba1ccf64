// tally.h: sums of the metrics that answers name, so that their mean does not depend on the order
// in which answers come.
#ifndef RLHF_REWARDS_HTTP_TALLY_H
#define RLHF_REWARDS_HTTP_TALLY_H

#include <rlhf/host.h>

enum { RLHF__TALLY_NAMES = 64, RLHF__TALLY_NAME = 64 };

struct rlhf__tally_entry {
    char name[RLHF__TALLY_NAME]; // NUL-ended
    double sum;
    uint64_t rows;
};

struct rlhf__tally {
    struct rlhf__tally_entry *entry; // [n], room for RLHF__TALLY_NAMES; NULL while n is 0
    uint32_t n;
    int32_t left_out; // 1: a name was refused
};

// Add one row's value. A name that is no 1 to 63 of A-Z a-z 0-9 _ . / -, and names beyond
// RLHF__TALLY_NAMES, are left out and said in left_out. RLHF_E_NOMEM. [any]
rlhf_status rlhf__tally_add(struct rlhf__tally *, const rlhf_host *, const char *name, size_t len,
                            double value, uint64_t rows);
// Add all of another one, in its order. [any]
rlhf_status rlhf__tally_merge(struct rlhf__tally *, const rlhf_host *, const struct rlhf__tally *);
// Report the means to the host. [step]
void rlhf__tally_report(const struct rlhf__tally *, const rlhf_host *);
void rlhf__tally_finish(struct rlhf__tally *, const rlhf_host *); // leaves an empty one [any]

#endif
