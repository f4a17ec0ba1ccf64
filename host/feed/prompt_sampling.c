// prompt_sampling.c: see prompt_sampling.h.
#include "feed/prompt_sampling.h"

#include "sample/decode.h"
#include "team/team.h"

#include <stdlib.h>

// ---- life ----

// Choose the tokens over which log-probs are normalized: all tokens, or those that sampling kept.
// Fails if a model does not support the latter.
static rlhf_status choose_support(struct rlhf__prompt_sampling *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->env->cast;
    const rlhf_dist d = rlhf__sampling_dist(&p->env->config->sampling);
    RLHF_TRY(rlhf__compute_draws(cast->policy->compute, &d, err));
    int cuts = d.top_p < 1 || d.min_p > 0 || (d.top_k > 0 && d.top_k < cast->policy->info.n_vocab);
    p->keep_support = cuts && !(cast->plan.flags & RLHF_PLAN_FULL_SUPPORT);
    const struct rlhf__model *models[2 + RLHF_NAMED_MAX] = {cast->policy, cast->reference};
    for (uint32_t i = 0; i < cast->plan.n_named; i++)
        models[2 + i] = cast->named[i];
    for (size_t i = 0; p->keep_support && i < 2 + cast->plan.n_named; i++)
        if (models[i] && !(models[i]->info.caps & RLHF_CAP_SUPPORT))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "log-probs over what top-k, top-p or min-p kept "
                              "(algo.logprob_support=sampled): %s cannot give them for '%s'; "
                              "algo.logprob_support=full does without",
                              models[i]->instance->plugin->file, models[i]->dir);
    return RLHF_OK;
}

static void choose_slots(struct rlhf__prompt_sampling *p) {
    const struct rlhf__config *c = p->env->config;
    const struct rlhf__cast *cast = p->env->cast;
    p->slots = rlhf__compute_slots(cast->policy->compute, c->sampling.slots);
    if (p->slots > c->batch.size) p->slots = (uint32_t)c->batch.size;
    p->group = (uint32_t)cast->plan.group_size;
    p->share = c->batch.share_prompts && p->group > 1;
    if (p->share) p->prefix_slots = rlhf__prefix_slots(cast->policy, p->slots, p->group);
}

rlhf_status rlhf__prompt_sampling_init(struct rlhf__prompt_sampling *p,
                                       const struct rlhf__feed_env *env,
                                       const struct rlhf__prompts *prompts,
                                       struct rlhf__error *err) {
    *p = (struct rlhf__prompt_sampling){.env = env, .prompts = prompts};
    choose_slots(p);
    return choose_support(p, err);
}

static rlhf_status open_cache(const struct rlhf__prompt_sampling *p, const struct rlhf__model *m,
                              uint32_t longest, rlhf_gen **out, struct rlhf__error *err) {
    return rlhf__model_gen_open(m, p->slots + p->prefix_slots, longest, out, err);
}

rlhf_status rlhf__prompt_sampling_ready(struct rlhf__prompt_sampling *p, uint32_t longest,
                                        struct rlhf__error *err) {
    const struct rlhf__model *policy = p->env->cast->policy;
    if (!RLHF_COMPUTE_HAS(policy->compute, record)) return RLHF_OK;
    return open_cache(p, policy, longest, &p->cache, err);
}

void rlhf__prompt_sampling_finish(struct rlhf__prompt_sampling *p) {
    if (p->env) rlhf__model_gen_close(p->env->cast->policy, p->cache);
}

// ---- requests ----

struct rlhf__rollout_request rlhf__prompt_sampling_request(const struct rlhf__prompt_sampling *p) {
    const struct rlhf__cast *cast = p->env->cast;
    struct rlhf__rollout_request q =
        rlhf__rollout_request(p->env->config, cast->policy, p->prompts, cast->rules);
    q.cache = p->cache;
    q.slots = p->slots;
    q.prefix_slots = p->prefix_slots;
    q.keep_support = p->keep_support;
    q.logp_dist = cast->logp_dist;
    q.cancelled = p->env->abandons;
    return q;
}

struct rlhf__rollout_request rlhf__prompt_sampling_batch(const struct rlhf__prompt_sampling *p) {
    struct rlhf__rollout_request q = rlhf__prompt_sampling_request(p);
    q.n = (uint32_t)p->env->config->batch.size;
    q.stream = "rollout";
    q.group = p->group;
    return q;
}

rlhf_status rlhf__prompt_sampling_overlap(const struct rlhf__prompt_sampling *p, uint32_t n,
                                          struct rlhf__experience *x, struct rlhf__error *err) {
    const struct rlhf__config *c = p->env->config;
    const struct rlhf__cast *cast = p->env->cast;
    const struct rlhf__overlap_request q = {.config = c,
                                            .rewards = cast->rewards,
                                            .by = {&c->response, cast->rules, p->prompts},
                                            .phase = x->phase,
                                            .log = p->env->log,
                                            .n = n,
                                            .group = p->group};
    // With several processes, scoring does not overlap with sampling, because each process calls
    // the rewards for its rows after sampling all of them.
    if (!c->mixing.overlap || rlhf__team_shares(cast->share.team)) return RLHF_OK;
    return rlhf__overlap_open(&q, &x->overlap, err);
}

// ---- the memory estimate ----

// Sample two tokens for each of q.n rows. `source` has their prompts; NULL: the first prompts.
static rlhf_status sample_two(struct rlhf__rollout_request q, const int64_t *source,
                              struct rlhf__error *err) {
    struct rlhf__rows few = {0};
    q.stream = "estimate";
    q.max_new = q.max_new < 2 ? q.max_new : 2;
    q.keep_support = 0;
    q.rules = NULL;
    int64_t *row = calloc(q.n, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", q.n);
    for (uint32_t i = 0; i < q.n; i++)
        row[i] = source ? source[i] : i;
    const rlhf_status st = rlhf__rollout(&q, row, &few, NULL, err);
    rlhf__rows_finish(&few);
    free(row);
    return st;
}

rlhf_status rlhf__prompt_sampling_estimate(const struct rlhf__prompt_sampling *p,
                                           const struct rlhf__model *m, uint32_t longest,
                                           const struct rlhf__experience *x, rlhf_gen **cache,
                                           struct rlhf__error *err) {
    struct rlhf__rollout_request q = rlhf__prompt_sampling_batch(p);
    q.model = m;
    q.n = p->slots;
    RLHF_TRY(open_cache(p, m, longest, cache, err));
    q.cache = *cache;
    return sample_two(q, x->rows.source, err);
}

rlhf_status rlhf__prompt_sampling_estimate_held_out(const struct rlhf__prompt_sampling *p,
                                                    const struct rlhf__prompts *held_out,
                                                    struct rlhf__held_out_estimate *out,
                                                    struct rlhf__error *err) {
    struct rlhf__rollout_request q = rlhf__prompt_sampling_request(p);
    const int64_t all = rlhf__prompts_count(held_out);
    q.prompts = held_out;
    q.group = 1;
    q.n = all < p->slots ? (uint32_t)all : p->slots;
    if (all == 0) return RLHF_OK;
    *out = (struct rlhf__held_out_estimate){.share = (double)q.n / (double)all,
                                            .responses = (uint32_t)all};
    return sample_two(q, NULL, err);
}
