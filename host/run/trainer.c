// trainer.c: see trainer.h.
#include "run/trainer.h"

#include "learn/algo.h"

int32_t rlhf__trainer_moments(const struct rlhf__config *c) {
    return c->optim.kind == RLHF__OPTIM_MUON ? 1 : 2;
}

rlhf_status rlhf__trainer_optim(const struct rlhf__run *r, const struct rlhf__model *m,
                                struct rlhf__optim **out, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const int critic = m == r->cast.critic;
    struct rlhf__optim_config own = c->optim;
    if (critic && c->value.lr > 0) own.lr = c->value.lr;
    RLHF_TRY(rlhf__optim_create(m->compute, m->params, m->n_tensors, &own, critic ? 0 : c->value.lr,
                                out, err));
    rlhf__optim_range(*out, m->info.grad_base, m->info.grad_bytes);
    return RLHF_OK;
}

struct rlhf__learner rlhf__trainer_learner(const struct rlhf__run *r, struct rlhf__optim *optim,
                                           struct rlhf__optim *critic_optim) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__cast *cast = &r->cast;
    return (struct rlhf__learner){.model = cast->policy,
                                  .reference = cast->reference,
                                  .critic = cast->critic,
                                  .reward_head = rlhf__reward_training_head(r->reward_training),
                                  .critic_optim = critic_optim,
                                  .objective = rlhf__algo_objective(cast->algo),
                                  .optim = optim,
                                  .plan = cast->plan,
                                  .dist = cast->logp_dist,
                                  .microbatch_tokens = rlhf__compute_microbatch(
                                      cast->policy->compute, c->batch.microbatch_tokens),
                                  .written_out = !c->batch.share_prompts,
                                  .max_new_tokens = c->sampling.max_new_tokens,
                                  .watch = rlhf__progress_watch(r->report.progress)};
}
