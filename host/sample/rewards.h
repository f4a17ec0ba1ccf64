// rewards.h: opens the reward plugins of a config, in the config's order.
#ifndef RLHF_HOST_SAMPLE_REWARDS_H
#define RLHF_HOST_SAMPLE_REWARDS_H

#include "base/watch.h"
#include "config/config.h"
#include "data/prompts.h"
#include "plugin/services.h"

#include <rlhf/service.h>

struct rlhf__rewards_request {
    const struct rlhf__config *config;        // reward[n_reward]: names and options
    const struct rlhf__plugin *const *plugin; // [config->n_reward]
    struct rlhf__services *services;
    // Filled from the config and offered to the rewards. It must outlive the rewards.
    rlhf_limits *limits;
    const char *flag;                // source of the options, for messages; NULL = the config
    const struct rlhf__watch *watch; // receives each reward's name as it is loaded; may be NULL
};

// Create an instance of each reward. *out is an array of config->n_reward instances, which the
// caller owns; after a failure it is NULL. Each instance reports its metrics as rewards/<name>.
// Errors: RLHF_E_NOMEM, those of the plugins. [main]
rlhf_status rlhf__rewards_open(const struct rlhf__rewards_request *, struct rlhf__instance ***out,
                               struct rlhf__error *err);

// Offer rewards.timeout_s, rewards.memory_mib and rewards.retries to plugins, unless limits have
// already been offered. *limits must outlive the plugins. Errors: those of rlhf__services_offer.
// [main]
rlhf_status rlhf__rewards_offer_limits(const struct rlhf__config *, struct rlhf__services *,
                                       rlhf_limits *limits, struct rlhf__error *err);

// Reject each of these settings if the user set it although it does nothing:
// - rewards.timeout_s and rewards.memory_mib, if all rewards and the judge work inside the host's
//   process and the run has no environment;
// - rewards.overlap, if no reward may be called early (reward_overlap.h).
// `judge` may be NULL. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__rewards_check_limits(const struct rlhf__config *c,
                                       struct rlhf__instance *const *rewards,
                                       const struct rlhf__instance *judge, struct rlhf__error *err);

// Let a reward or an environment check the data row of every prompt. `held_out` is 1 if the prompts
// only measure the policy. Does nothing if `prompts` is NULL, which means that the run uses rows of
// a file. `watch` may be NULL. Errors: RLHF_E_INVALID with file and line, and the plugin's message;
// RLHF_E_CANCELLED. [main]
rlhf_status rlhf__check_rows(const struct rlhf__instance *of, const struct rlhf__prompts *prompts,
                             int held_out, const struct rlhf__watch *watch,
                             struct rlhf__error *err);

void rlhf__rewards_close(struct rlhf__instance **, size_t n); // NULL allowed [main]

#endif
