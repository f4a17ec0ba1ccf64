// prompt_episodes.c: see prompt_episodes.h.
#include "feed/prompt_episodes.h"

#include "episode/episode_share.h"
#include "feed/recorded_play.h"

// Set only the limits, for an environment that is not open. Tools that the environment may list in
// prompts are not counted.
static rlhf_status limit(const struct rlhf__feed_env *env, const struct rlhf__prompts *prompts,
                         struct rlhf__prompt_episodes *out, struct rlhf__error *err) {
    const struct rlhf__episode_prompt longest = {rlhf__prompts_longest(prompts), 0};
    return rlhf__episode_limits(env->config, env->cast->policy->info.n_ctx, &longest,
                                &out->train.limits, err);
}

rlhf_status rlhf__prompt_episodes_open(const struct rlhf__feed_env *env,
                                       const struct rlhf__prompts *prompts,
                                       const struct rlhf__prompts *held_out, int alone,
                                       struct rlhf__prompt_episodes *out, struct rlhf__error *err) {
    struct rlhf__playing p = {.config = env->config,
                              .environment = env->cast->environment,
                              .policy = env->cast->policy,
                              .rules = env->cast->rules,
                              .prompts = prompts,
                              .alone = alone,
                              .seed = (uint64_t)env->config->run.seed};
    *out = (struct rlhf__prompt_episodes){0};
    if (!env->environment) return RLHF_OK;
    if (!p.environment) return limit(env, prompts, out, err);
    RLHF_TRY(rlhf__playing_open(&p, &out->train, err));
    p.prompts = held_out;
    p.alone = 0;
    p.held_out = 1;
    return held_out ? rlhf__playing_open(&p, &out->held_out, err) : RLHF_OK;
}

void rlhf__prompt_episodes_close(struct rlhf__prompt_episodes *e) {
    rlhf__playing_close(&e->train);
    rlhf__playing_close(&e->held_out);
}

int32_t rlhf__prompt_episodes_longest(const struct rlhf__prompt_episodes *e) {
    const int32_t most = e->train.limits.tokens, other = e->held_out.limits.tokens;
    return most > other ? most : other;
}

rlhf_status rlhf__prompt_episodes_play(const struct rlhf__prompt_episodes *e,
                                       const struct rlhf__feed_env *env,
                                       const struct rlhf__rollout_request *q, const int64_t *row,
                                       struct rlhf__experience *x, struct rlhf__error *err) {
    const struct rlhf__episodes_request of = {.setup = &e->train,
                                              .row = row,
                                              .n = q->n,
                                              .group = q->group,
                                              .first = q->first,
                                              .stream = "environment",
                                              .phase = x->phase};
    if (env->answers) return rlhf__recorded_play(env->answers, q, row, x, err);
    return rlhf__playing_share(env->cast->share.team, &of, q, &x->rows, &x->tokens, &x->replies,
                               err);
}
