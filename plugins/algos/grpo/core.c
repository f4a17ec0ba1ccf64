// core.c: see core.h.
#include "grpo/core.h"

#include <rlhf/log.h>

rlhf_status rlhf__grpo_init(struct rlhf__grpo *g, const rlhf_host *host,
                            const struct rlhf__grpo_options *opt) {
    g->host = host;
    g->opt = *opt;
    struct rlhf__kl_control kl = {0,
                                  opt->kl_coef,
                                  opt->kl_target,
                                  opt->kl_horizon,
                                  opt->kl_placement,
                                  opt->kl_estimator,
                                  opt->kl_controller,
                                  opt->kl_unit};
    g->kl = kl;
    rlhf__pg_metrics_reset(&g->metrics);
    RLHF_TRY(rlhf__kl_control_init(host, &g->kl));
    return rlhf__grpo_options_check(host, opt);
}

void rlhf__grpo_finish(struct rlhf__grpo *g) {
    rlhf__pg_metrics_finish(g->host, &g->metrics);
    g->host->free(g->host, g->scratch);
}

rlhf_status rlhf__grpo_plan(const struct rlhf__grpo *g, const rlhf_run_info *info, rlhf_plan *out) {
    const struct rlhf__grpo_options *o = &g->opt;
    RLHF_TRY(rlhf__minibatches_check(g->host, o->minibatches, info));
    RLHF_TRY(rlhf__kl_control_plan(g->host, &g->kl, info->batch_size));
    struct rlhf__choices choices = {o->kl_placement, o->kl_measure,          o->advantage_scope,
                                    o->old_logp,     o->logprob_temperature, o->logprob_support};
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY;
    if (o->kl_estimator == RLHF__KL_FULL) out->heads |= RLHF_HEAD_KL;
    out->flags = rlhf__plan_flags(&choices);
    if (o->advantage_scope == RLHF__SCOPE_MINIBATCH) out->flags |= RLHF_PLAN_WHOLE_GROUPS;
    out->epochs = (int32_t)o->epochs;
    out->minibatches = (int32_t)o->minibatches;
    out->group_size = (int32_t)o->group_size;
    return RLHF_OK;
}

void rlhf__grpo_minibatch_end(struct rlhf__grpo *g, int32_t *stop) {
    double approx_kl = rlhf__pg_approx_kl(&g->metrics.minibatch);
    *stop = g->opt.target_kl > 0 && approx_kl > g->opt.target_kl;
    rlhf__pg_fold(&g->metrics);
}

void rlhf__grpo_phase_end(struct rlhf__grpo *g) {
    struct rlhf__pg_report how = {g->kl.coef, g->opt.kl_placement != RLHF__KL_NOWHERE, 0,
                                  g->opt.logprob_support == RLHF__SUPPORT_SAMPLED, 1};
    rlhf__pg_report(g->host, &g->metrics, &how);
    rlhf__kl_control_update(&g->kl, &g->metrics.rollout);
    rlhf__pg_metrics_reset(&g->metrics);
    g->advantage_calls = 0;
    g->phase_tokens = 0;
}
