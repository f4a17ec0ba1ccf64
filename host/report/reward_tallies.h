// reward_tallies.h: time and failures of a run's rewards and judge, in the current phase and in
// this process.
#ifndef RLHF_HOST_REWARD_TALLIES_H
#define RLHF_HOST_REWARD_TALLIES_H

#include "config/config.h"
#include "report/metrics.h"
#include "sample/reward_call.h"

#include <stddef.h>

// Entries in the order of the config's rewards, then the judge's. Zero-initialise; release with
// rlhf__reward_tallies_finish.
struct rlhf__reward_tallies {
    struct rlhf__reward_tally *phase; // [n + 1]
    struct rlhf__reward_tally *run;   // [n + 1]
    size_t n;                         // rewards
};

// Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__reward_tallies_init(struct rlhf__reward_tallies *a, size_t n_reward,
                                      struct rlhf__error *err);
void rlhf__reward_tallies_finish(struct rlhf__reward_tallies *a); // accepts a zeroed one [any]

// At the end of a phase, or after it was given up: add its entries to those of the process and
// clear them. [main]
void rlhf__reward_tallies_close(struct rlhf__reward_tallies *a);

// Set rewards/<name>/{time,failures,retries} of the phase, and judge/... if there is a judge.
// [main]
void rlhf__reward_tallies_report(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                                 int judges, struct rlhf__metrics *m);

// Sum of all entries of the phase. [main]
struct rlhf__reward_tally rlhf__reward_tallies_sum(const struct rlhf__reward_tallies *a);

// Log a line for each reward that failed in this process. [main]
void rlhf__reward_tallies_say(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                              struct rlhf__log *log);

#endif
