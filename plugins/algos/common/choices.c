// choices.c: see choices.h.
#include "common/choices.h"

#include <rlhf/log.h>

const char *const rlhf__std_names[] = {"unbiased", "biased", NULL};
const char *const rlhf__kl_placement_names[] = {"reward", "loss", "none", NULL};
const char *const rlhf__kl_estimator_names[] = {"k1", "k2", "k3", "full", NULL};
const char *const rlhf__kl_controller_names[] = {"fixed", "adaptive", NULL};
const char *const rlhf__kl_unit_names[] = {"sequence", "token", NULL};
const char *const rlhf__scope_names[] = {"batch", "minibatch", NULL};
const char *const rlhf__ratio_names[] = {"token", "sequence", "sequence_mean", NULL};
const char *const rlhf__old_logp_names[] = {"rollout", "recompute", NULL};
const char *const rlhf__temperature_names[] = {"sampling", "unit", NULL};
const char *const rlhf__support_names[] = {"full", "sampled", NULL};

uint32_t rlhf__plan_flags(const struct rlhf__choices *c) {
    uint32_t flags = 0;
    if (c->kl_placement != RLHF__KL_NOWHERE || c->kl_measure) flags |= RLHF_PLAN_REFERENCE;
    if (c->scope == RLHF__SCOPE_MINIBATCH) flags |= RLHF_PLAN_MINIBATCH_SCOPE;
    if (c->old_logp == RLHF__OLD_RECOMPUTE) flags |= RLHF_PLAN_RECOMPUTE_LOGP;
    if (c->support == RLHF__SUPPORT_FULL) flags |= RLHF_PLAN_FULL_SUPPORT;
    if (c->temperature == RLHF__TEMPERATURE_UNIT) flags |= RLHF_PLAN_UNIT_TEMPERATURE;
    return flags;
}

rlhf_status rlhf__minibatches_check(const rlhf_host *host, int64_t minibatches,
                                    const rlhf_run_info *info) {
    if (minibatches <= info->batch_size) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_INVALID,
                      "minibatches is %lld, more than the %u sequences of a phase",
                      (long long)minibatches, (unsigned)info->batch_size);
}
