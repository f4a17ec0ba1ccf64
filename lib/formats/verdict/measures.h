// measures.h: the headline and further measures. The headline is the metric by which a run is
// judged. Training does not optimize the further measures.
#ifndef RLHF_FORMATS_VERDICT_MEASURES_H
#define RLHF_FORMATS_VERDICT_MEASURES_H

#include "verdict/run_facts.h"
#include "verdict/trend.h"

// The input of a rule.
struct rlhf__history {
    const struct rlhf__series_set *series;
    const struct rlhf__run_facts *facts;
};

// The series of a metric; empty if the run did not report it. Borrowed. [any]
const struct rlhf__series *rlhf__measured(const struct rlhf__history *, const char *metric);
// The mean at its end (rlhf__trend_ends), or 0 for an empty series. [any]
double rlhf__last_of(const struct rlhf__series *);

// The metric that decides how a run is judged.
struct rlhf__headline {
    const char *metric; // NULL: the run did not report such a metric
    const char *word;   // "Reward": a word to begin a sentence with
    int32_t better;     // 1: higher is better; -1: lower is better
};

// Returns the first metric in the list of measures.c that has at least two values. [any]
struct rlhf__headline rlhf__headline_of(const struct rlhf__series_set *);

// Returns the standard deviation of a single value of a metric. It is estimated from the steps
// between phases (trend.h). For the reward, and for a metric with the same values, it is also
// estimated from the rows (objective/scores_error). The smaller estimate counts, because steps also
// contain what the policy learns. [any]
double rlhf__measure_noise(const struct rlhf__series_set *, const char *metric);

// As rlhf__trend_moved, with that noise. [any]
int rlhf__measure_moved(const struct rlhf__series_set *, const char *metric);

// 1 if the run is judged by its reward. [any]
int rlhf__headline_is_reward(const struct rlhf__series_set *);

// 1: the headline improved; -1: it got worse; 0: it stayed the same, or there is no headline. [any]
int rlhf__headline_moved(const struct rlhf__series_set *);

// Measures that training does not optimize: judge/mean and eval/..., in this order. For `better`,
// see struct rlhf__headline.
struct rlhf__witness {
    const char *metric;
    int32_t better;
    const char *word; // "reward"
};
const struct rlhf__witness *rlhf__witness_at(size_t i); // NULL after the last one [any]

// Returns 1 if measure i only repeats an earlier measure. For example, if the only reward is for
// right answers, eval/reward equals the share of right answers. [any]
int rlhf__witness_repeats(const struct rlhf__series_set *, size_t i);

// Returns 1 if the metric counts rows without a score: rewards/.../failures, rewards/not_finite.
// [any]
int rlhf__is_failure_metric(const char *name);

#endif
