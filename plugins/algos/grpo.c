// grpo.c: group relative policy optimization (Shao et al. 2024, DeepSeekMath) and the losses that
// were derived from it. This file has the plugin's descriptor.
//
// The host samples, scores, and runs the optimizer; grpo_iterative.so also updates the reference.
// Formulas and sources: docs/algorithms/grpo.md.
#include "grpo_method.h"

enum { STATE_VERSION = 1 };

static const struct rlhf__pg_method method = {
    .name = "grpo",
    .magic = {'R', 'G', 'R', 'P'},
    .state_version = STATE_VERSION,
    .compare = rlhf__grpo_compare,
    .terms = rlhf__grpo_terms,
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    return rlhf__grpo_create(host, &method, config, sizeof(struct rlhf__grpo), self);
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = rlhf__grpo_plan,
    .advantages = rlhf__pg_advantages,
    .loss = rlhf__pg_loss,
    .minibatch_end = rlhf__pg_minibatch_end,
    .phase_end = rlhf__pg_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .state_version = STATE_VERSION,
    .id = "org.rlhf-host.grpo",
    .version = RLHF_SDK_VERSION,
    .summary = "group relative policy optimization: several responses per prompt, no critic",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct rlhf__grpo_options, rlhf__grpo_option_table),
    .create = create,
    .destroy = rlhf__pg_destroy,
    .save = rlhf__pg_save,
    .load = rlhf__pg_load,
    .ops = &ops,
    .why_unused = rlhf__grpo_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
