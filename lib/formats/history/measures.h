// measures.h: the headline, which is the metric that a run is judged by, and further measures that
// training does not optimize.
#ifndef RLHF_FORMATS_HISTORY_MEASURES_H
#define RLHF_FORMATS_HISTORY_MEASURES_H

#include "history/run_facts.h"
#include "history/trend.h"

// What a rule reads.
struct rlhf__history {
    const struct rlhf__series_set *series;
    const struct rlhf__run_facts *facts;
};

// The metric that a run is judged by.
struct rlhf__headline {
    const char *metric; // NULL: the run reports no such metric
    const char *word;   // "Reward", to begin a sentence
    int32_t better;     // 1: higher is better, -1: lower is
    int32_t reserved;
};

// Returns the first metric in the list of measures.c that has at least two values. [any]
struct rlhf__headline rlhf__headline_of(const struct rlhf__series_set *);

// 1: the headline improved, -1: it got worse, 0: it did not move or does not exist. [any]
int rlhf__headline_moved(const struct rlhf__series_set *);

// Measures that training does not optimize: judge/mean and eval/..., in this order. `better` is as
// in struct rlhf__headline.
struct rlhf__witness {
    const char *metric;
    int32_t better, reserved;
};
const struct rlhf__witness *rlhf__witness_at(size_t i); // NULL after the last one [any]

// 1 if measure i only repeats an earlier one: if right answers are the only reward, eval/reward
// equals the share of right answers. [any]
int rlhf__witness_repeats(const struct rlhf__series_set *, size_t i);

#endif
