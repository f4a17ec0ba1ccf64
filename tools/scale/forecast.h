// forecast.h: the costs of a run on several numbers of ranks, as a table and as JSON.
#ifndef RLHF_TOOLS_SCALE_FORECAST_H
#define RLHF_TOOLS_SCALE_FORECAST_H

#include "base/buf.h"
#include "scale/cost.h"

enum { RLHF__SCALE_RANKS = 32, RLHF__SCALE_MOST_RANKS = 65536 };

// The numbers of ranks for which a forecast is made.
struct rlhf__scale_question {
    uint32_t n;
    int32_t
        grows; // 1: plan.rows counts the rows of one rank, so a phase has plan.rows * ranks rows
    double ranks[RLHF__SCALE_RANKS];
    double per_host; // ranks on each machine
    // 1: the user gave the numbers in `ranks`; 0: the list ends where the run cannot be divided
    // further.
    int32_t chosen;
    int32_t reserved;
};

// Append the measurements, the table, and the number of ranks beyond which more do not help. [any]
void rlhf__scale_table(const struct rlhf__scale_figures *f, const struct rlhf__scale_question *q,
                       struct rlhf__buf *out);

// Returns the same as a JSON object; NULL if out of memory. [any]
json_t *rlhf__scale_json(const struct rlhf__scale_figures *f, const struct rlhf__scale_question *q);

#endif
