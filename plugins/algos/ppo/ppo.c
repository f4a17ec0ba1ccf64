// ppo.c: proximal policy optimisation for language models, with the critic-free and group variants
// that differ only in how advantages are made. This file: descriptor, plan, phase bookkeeping.
//
// What it is not: it samples nothing, scores nothing and steps no optimiser; it sees per-token
// numbers only. Formulas and sources: docs/algorithms/ppo.md.
#include "ppo/ppo.h"

#include <math.h>
#include <rlhf/log.h>

static rlhf_status ppo_create(const rlhf_host *host, const void *config, void **self) {
    const struct rlhf__ppo_options *opt = config;
    RLHF_TRY(rlhf__ppo_options_check(host, opt));
    struct rlhf__ppo *p = host->alloc(host, sizeof *p);
    if (!p) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    p->host = host;
    p->opt = *opt;
    p->kl_coef = opt->kl_placement == RLHF__PPO_KL_NONE ? 0 : opt->kl_coef;
    rlhf__ppo_metrics_reset(&p->metrics);
    *self = p;
    return RLHF_OK;
}

static void ppo_destroy(void *self) {
    struct rlhf__ppo *p = self;
    if (!p) return;
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
    if (o->minibatches > info->batch_size)
        return rlhf_failf(p->host, RLHF_E_INVALID,
                          "minibatches is %lld, more than the %d sequences of a phase",
                          (long long)o->minibatches, (int)info->batch_size);
    if (o->kl_controller == RLHF__PPO_KL_ADAPTIVE && 0.2 * info->batch_size >= o->kl_horizon)
        return rlhf_failf(p->host, RLHF_E_INVALID,
                          "kl_horizon is %g; with %d sequences a phase it must be above %g",
                          o->kl_horizon, (int)info->batch_size, 0.2 * info->batch_size);
    int full = o->kl_estimator == RLHF__KL_FULL && o->kl_placement == RLHF__PPO_KL_LOSS;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY;
    if (rlhf__ppo_has_critic(o)) out->heads |= RLHF_HEAD_VALUE;
    if (full) out->heads |= RLHF_HEAD_KL;
    out->flags = 0;
    if (o->kl_placement != RLHF__PPO_KL_NONE || o->kl_measure) out->flags |= RLHF_PLAN_REFERENCE;
    if (o->whiten_scope == RLHF__PPO_MINIBATCH) out->flags |= RLHF_PLAN_MINIBATCH_SCOPE;
    if (o->old_logp == RLHF__PPO_OLD_RECOMPUTE) out->flags |= RLHF_PLAN_RECOMPUTE_LOGP;
    if (o->logprob_support == RLHF__PPO_FULL) out->flags |= RLHF_PLAN_FULL_SUPPORT;
    if (o->logprob_temperature == RLHF__PPO_UNIT_TEMPERATURE)
        out->flags |= RLHF_PLAN_UNIT_TEMPERATURE;
    out->epochs = (int32_t)o->epochs;
    out->minibatches = (int32_t)o->minibatches;
    out->group_size = (int32_t)o->group_size;
    return RLHF_OK;
}

static rlhf_status ppo_minibatch_end(void *self, int32_t *stop) {
    struct rlhf__ppo *p = self;
    double approx_kl = rlhf__ppo_approx_kl(&p->metrics.minibatch);
    *stop = p->opt.target_kl > 0 && approx_kl > p->opt.target_kl;
    rlhf__ppo_fold(&p->metrics);
    return RLHF_OK;
}

static void adapt(struct rlhf__ppo *p) {
    const struct rlhf__ppo_rollout_sums *r = &p->metrics.rollout;
    int64_t n = p->opt.kl_unit == RLHF__PPO_KL_PER_TOKEN ? r->kl_tokens : r->kl_sequences;
    if (p->opt.kl_controller != RLHF__PPO_KL_ADAPTIVE || n == 0 || !isfinite(r->kl)) return;
    p->kl_coef = rlhf__kl_adapt(p->kl_coef, r->kl / (double)n, p->opt.kl_target,
                                (double)r->kl_sequences, p->opt.kl_horizon);
}

static rlhf_status ppo_phase_end(void *self, uint64_t phase) {
    struct rlhf__ppo *p = self;
    (void)phase;
    struct rlhf__ppo_report how = {p->kl_coef, p->opt.kl_placement != RLHF__PPO_KL_NONE,
                                   rlhf__ppo_has_critic(&p->opt),
                                   p->opt.logprob_support == RLHF__PPO_SAMPLED};
    rlhf__ppo_report(p->host, &p->metrics, &how);
    adapt(p);
    rlhf__ppo_metrics_reset(&p->metrics);
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
