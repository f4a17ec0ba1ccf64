// ppo.c: proximal policy optimisation for language models, with the critic-free and group variants
// that differ only in how advantages are made. This file: descriptor, plan, phase bookkeeping.
//
// What it is not: it samples nothing, scores nothing and steps no optimiser; it sees per-token
// numbers only. Formulas and sources: docs/algorithms/ppo.md.
#include "ppo/ppo.h"

#include <rlhf/log.h>

static rlhf_status ppo_create(const rlhf_host *host, const void *config, void **self) {
    const struct rlhf__ppo_options *opt = config;
    RLHF_TRY(rlhf__ppo_options_check(host, opt));
    struct rlhf__kl_control kl = {0,
                                  opt->kl_coef,
                                  opt->kl_target,
                                  opt->kl_horizon,
                                  opt->kl_placement,
                                  opt->kl_estimator,
                                  opt->kl_controller,
                                  opt->kl_unit};
    RLHF_TRY(rlhf__kl_control_init(host, &kl));
    struct rlhf__ppo *p = host->alloc(host, sizeof *p);
    if (!p) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    p->host = host;
    p->opt = *opt;
    p->kl = kl;
    rlhf__pg_metrics_reset(&p->metrics);
    *self = p;
    return RLHF_OK;
}

static void ppo_destroy(void *self) {
    struct rlhf__ppo *p = self;
    if (!p) return;
    rlhf__pg_metrics_finish(p->host, &p->metrics);
    p->host->free(p->host, p->scratch);
    p->host->free(p->host, p);
}

void *rlhf__ppo_scratch(struct rlhf__ppo *p, uint64_t bytes) {
    if (bytes <= p->scratch_bytes) return p->scratch;
    p->host->free(p->host, p->scratch);
    p->scratch = p->host->alloc(p->host, bytes);
    p->scratch_bytes = p->scratch ? bytes : 0;
    return p->scratch;
}

static rlhf_status ppo_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    const struct rlhf__ppo *p = self;
    const struct rlhf__ppo_options *o = &p->opt;
    RLHF_TRY(rlhf__minibatches_check(p->host, o->minibatches, info));
    RLHF_TRY(rlhf__kl_control_plan(p->host, &p->kl, info->batch_size));
    int full = o->kl_estimator == RLHF__KL_FULL && o->kl_placement == RLHF__KL_IN_LOSS;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY;
    if (rlhf__ppo_has_critic(o)) out->heads |= RLHF_HEAD_VALUE;
    if (full) out->heads |= RLHF_HEAD_KL;
    struct rlhf__choices choices = {o->kl_placement, o->kl_measure,          o->whiten_scope,
                                    o->old_logp,     o->logprob_temperature, o->logprob_support};
    out->flags = rlhf__plan_flags(&choices);
    out->epochs = (int32_t)o->epochs;
    out->minibatches = (int32_t)o->minibatches;
    out->group_size = (int32_t)o->group_size;
    return RLHF_OK;
}

static rlhf_status ppo_minibatch_end(void *self, int32_t *stop) {
    struct rlhf__ppo *p = self;
    double approx_kl = rlhf__pg_approx_kl(&p->metrics.minibatch);
    *stop = p->opt.target_kl > 0 && approx_kl > p->opt.target_kl;
    rlhf__pg_fold(&p->metrics);
    return RLHF_OK;
}

static rlhf_status ppo_phase_end(void *self, uint64_t phase) {
    struct rlhf__ppo *p = self;
    (void)phase;
    struct rlhf__pg_report how = {
        p->kl.coef, p->opt.kl_placement != RLHF__KL_NOWHERE, rlhf__ppo_has_critic(&p->opt),
        p->opt.logprob_support == RLHF__SUPPORT_SAMPLED, p->opt.group_size > 1};
    rlhf__pg_report(p->host, &p->metrics, &how);
    rlhf__kl_control_update(&p->kl, &p->metrics.rollout);
    rlhf__pg_metrics_reset(&p->metrics);
    p->advantage_calls = 0;
    p->phase_tokens = 0;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = ppo_plan,
    .advantages = rlhf__ppo_advantages,
    .loss = rlhf__ppo_loss,
    .minibatch_end = ppo_minibatch_end,
    .phase_end = ppo_phase_end,
};

static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .state_version = RLHF__PPO_STATE_VERSION,
    .id = "org.rlhf-host.ppo",
    .version = RLHF_SDK_VERSION,
    .summary = "proximal policy optimisation, with or without a critic",
    .opts = rlhf__ppo_option_table,
    .n_opts = RLHF__PPO_OPTION_COUNT,
    .opt_stride = sizeof(rlhf_opt),
    .config_size = sizeof(struct rlhf__ppo_options),
    .create = ppo_create,
    .destroy = ppo_destroy,
    .save = rlhf__ppo_save,
    .load = rlhf__ppo_load,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
