// reward_accounts.h: what the rewards and the judge of a run cost and failed, in the phase at hand
// and in this process.
#ifndef RLHF_HOST_REWARD_ACCOUNTS_H
#define RLHF_HOST_REWARD_ACCOUNTS_H

#include "config/config.h"
#include "report/metrics.h"
#include "sample/reward_call.h"

#include <stddef.h>

// Entries in the order of the config's rewards, then the judge's. Zero-initialise; release with
// rlhf__reward_accounts_finish.
struct rlhf__reward_accounts {
    struct rlhf__reward_books *phase; // [n + 1]
    struct rlhf__reward_books *run;   // [n + 1]
    size_t n;                         // rewards
};

// Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__reward_accounts_init(struct rlhf__reward_accounts *a, size_t n_reward,
                                       struct rlhf__error *err);
void rlhf__reward_accounts_finish(struct rlhf__reward_accounts *a); // accepts a zeroed one [any]

// The phase is over, or was left: its entries join those of the process and are 0 again. [main]
void rlhf__reward_accounts_close(struct rlhf__reward_accounts *a);

// Set rewards/<name>/{time,failures,retries} of the phase, judge/ with a judge. [main]
void rlhf__reward_accounts_report(const struct rlhf__reward_accounts *a,
                                  const struct rlhf__config *c, int judges,
                                  struct rlhf__metrics *m);

// All entries of the phase together. [main]
struct rlhf__reward_books rlhf__reward_accounts_sum(const struct rlhf__reward_accounts *a);

// A line for each that failed in this process. [main]
void rlhf__reward_accounts_say(const struct rlhf__reward_accounts *a, const struct rlhf__config *c,
                               struct rlhf__log *log);

#endif
