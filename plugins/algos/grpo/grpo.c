// grpo.c: group relative policy optimisation (Shao et al. 2024, DeepSeekMath) and the losses that
// grew out of it. This file: descriptor, state.
//
// What it is not: it samples nothing, scores nothing, steps no optimiser and moves no reference
// (grpo_iterative.so does). Formulas and sources: docs/algorithms/grpo.md.
#include "grpo/core.h"

#include <rlhf/log.h>

static const char magic[4] = {'R', 'G', 'R', 'P'};
enum { STATE_VERSION = 1 };

static rlhf_status grpo_create(const rlhf_host *host, const void *config, void **self) {
    struct rlhf__grpo *g = host->alloc(host, sizeof *g);
    if (!g) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = rlhf__grpo_init(g, host, config);
    if (st < 0)
        host->free(host, g);
    else
        *self = g;
    return st;
}

static void grpo_destroy(void *self) {
    struct rlhf__grpo *g = self;
    if (!g) return;
    rlhf__grpo_finish(g);
    g->host->free(g->host, g);
}

static rlhf_status grpo_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    return rlhf__grpo_plan(self, info, out);
}

static rlhf_status grpo_advantages(void *self, const rlhf_rollout *in) {
    return rlhf__grpo_advantages(self, in);
}

static rlhf_status grpo_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    return rlhf__grpo_loss(self, in, out);
}

static rlhf_status grpo_minibatch_end(void *self, int32_t *stop) {
    rlhf__grpo_minibatch_end(self, stop);
    return RLHF_OK;
}

static rlhf_status grpo_phase_end(void *self, uint64_t phase) {
    (void)phase;
    rlhf__grpo_phase_end(self);
    return RLHF_OK;
}

static rlhf_status grpo_save(void *self, const rlhf_ostream *out) {
    const struct rlhf__grpo *g = self;
    return rlhf__kl_control_save(&g->kl, magic, out);
}

static rlhf_status grpo_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct rlhf__grpo *g = self;
    if (state_version != STATE_VERSION)
        return rlhf_failf(g->host, RLHF_E_UNSUPPORTED,
                          "state version %u; this grpo reads version %d", (unsigned)state_version,
                          STATE_VERSION);
    return rlhf__kl_control_load(g->host, &g->kl, magic, in);
}

static const rlhf_opt options[] = {RLHF__GRPO_OPTION_ROWS(struct rlhf__grpo_options)};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = grpo_plan,
    .advantages = grpo_advantages,
    .loss = grpo_loss,
    .minibatch_end = grpo_minibatch_end,
    .phase_end = grpo_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .state_version = STATE_VERSION,
    .id = "org.rlhf-host.grpo",
    .version = RLHF_SDK_VERSION,
    .summary = "group relative policy optimisation: several responses a prompt, no critic",
    .opts = options,
    .n_opts = sizeof options / sizeof *options,
    .opt_stride = sizeof *options,
    .config_size = sizeof(struct rlhf__grpo_options),
    .create = grpo_create,
    .destroy = grpo_destroy,
    .save = grpo_save,
    .load = grpo_load,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
