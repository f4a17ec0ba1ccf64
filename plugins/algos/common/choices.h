// choices.h: settings that have the same names in every policy-gradient algorithm, and the plan
// flags that they need. Each algorithm has a separate option table.
#ifndef RLHF_ALGOS_COMMON_CHOICES_H
#define RLHF_ALGOS_COMMON_CHOICES_H

#include <rlhf/algo.h>

enum rlhf__std { RLHF__STD_UNBIASED = 0, RLHF__STD_BIASED = 1 };
enum rlhf__kl_placement { RLHF__KL_IN_REWARD = 0, RLHF__KL_IN_LOSS = 1, RLHF__KL_NOWHERE = 2 };
enum rlhf__kl_controller { RLHF__KL_FIXED = 0, RLHF__KL_ADAPTIVE = 1 };
enum rlhf__kl_unit { RLHF__KL_PER_SEQUENCE = 0, RLHF__KL_PER_TOKEN = 1 };
enum rlhf__scope { RLHF__SCOPE_BATCH = 0, RLHF__SCOPE_MINIBATCH = 1 };
enum rlhf__old_logp { RLHF__OLD_ROLLOUT = 0, RLHF__OLD_RECOMPUTE = 1 };
enum rlhf__temperature { RLHF__TEMPERATURE_SAMPLING = 0, RLHF__TEMPERATURE_UNIT = 1 };
enum rlhf__support { RLHF__SUPPORT_FULL = 0, RLHF__SUPPORT_SAMPLED = 1 };

// Each array has the names of one enum's values, in the enum's order, and ends with NULL.
// surrogate.h has the enum of the ratio, and kl.h the enum of the KL estimator.
extern const char *const rlhf__std_names[],
    *const rlhf__kl_placement_names[], *const rlhf__kl_estimator_names[],
                                           *const rlhf__kl_controller_names[],
                                               *const rlhf__kl_unit_names[],
                                                   *const rlhf__scope_names[],
                                                       *const rlhf__ratio_names[],
                                                           *const rlhf__old_logp_names[],
                                                               *const rlhf__temperature_names[],
                                                                   *const rlhf__support_names[];

// The settings that determine the plan's flags. If kl_measure is 1, the KL is measured even without
// a penalty.
struct rlhf__choices {
    int32_t kl_placement, kl_measure, scope, old_logp, temperature, support;
};

// Bits of enum rlhf_plan_flag. [any]
uint32_t rlhf__plan_flags(const struct rlhf__choices *);

// Returns RLHF_E_INVALID, with a message, if there are more minibatches than sequences in a phase.
// [main]
rlhf_status rlhf__minibatches_check(const rlhf_host *, int64_t minibatches, const rlhf_run_info *);

#endif
