// rewards.c: see rewards.h.
#include "sample/rewards.h"

#include "config/effect.h"
#include "sample/reward_overlap.h"

#include <stdio.h>
#include <stdlib.h>

static rlhf_status open_one(const struct rlhf__rewards_request *q, size_t i,
                            struct rlhf__instance **out, struct rlhf__error *err) {
    const struct rlhf__plugin_config *reward = &q->config->reward[i];
    char section[32] = "", loading[64], owner[192];
    snprintf(owner, sizeof owner, "rewards/%s", reward->name);
    if (!q->flag) snprintf(section, sizeof section, "reward.%zu", i);
    snprintf(loading, sizeof loading, "loading %.40s", q->plugin[i]->file);
    rlhf__watch_seen(q->watch, loading, 0, 0);
    struct rlhf__origin from = {q->flag ? q->flag : "the config", section, NULL, 0, 0};
    return rlhf__instance_open(q->plugin[i], q->services, owner, reward->options, &from, out, err);
}

rlhf_status rlhf__rewards_offer_limits(const struct rlhf__config *config,
                                       struct rlhf__services *services, rlhf_limits *limits,
                                       struct rlhf__error *err) {
    const struct rlhf__mixing_config *c = &config->mixing;
    if (rlhf__services_find(services, RLHF_SVC_LIMITS)) return RLHF_OK;
    *limits =
        (rlhf_limits){.retries = c->on_failure == RLHF__FAILURE_RETRY ? (int32_t)c->retries : 0,
                      .timeout_s = c->timeout_s,
                      .memory_bytes = (uint64_t)c->memory_mib << 20};
    RLHF__PASS(rlhf_limits, limits, RLHF_ABI_MINOR);
    return rlhf__services_offer(services, RLHF_SVC_LIMITS, RLHF__STRUCT_rlhf_limits, limits, err);
}

rlhf_status rlhf__rewards_open(const struct rlhf__rewards_request *q, struct rlhf__instance ***out,
                               struct rlhf__error *err) {
    size_t n = q->config->n_reward;
    struct rlhf__instance **all = calloc(n ? n : 1, sizeof(void *));
    rlhf_status st = RLHF_OK;
    *out = NULL;
    if (all) st = rlhf__rewards_offer_limits(q->config, q->services, q->limits, err);
    if (!all) return RLHF__NOMEM(err, "out of memory for rewards");
    for (size_t i = 0; st == RLHF_OK && i < n; i++)
        st = open_one(q, i, &all[i], err);
    if (st == RLHF_OK)
        *out = all;
    else
        rlhf__rewards_close(all, n);
    return st;
}

// Returns 1 if the reward works outside the host's process, so that rewards.timeout_s and
// rewards.memory_mib have an effect.
static int is_outside(const struct rlhf__instance *reward) {
    const struct rlhf__outside *o = reward->plugin->outside;
    return (o && o->worker) || (reward->plugin->ops.reward.flags & RLHF_REWARD_EXTERNAL) != 0;
}

// Returns 1 if the reward works outside the host's process but needs log-probs, so that it cannot
// be called early.
static int needs_logps(const struct rlhf__instance *reward) {
    const uint32_t flags = reward->plugin->ops.reward.flags;
    return (flags & RLHF_REWARD_EXTERNAL) != 0 &&
           (flags & (RLHF_REWARD_LOGP_SAMPLED | RLHF_REWARD_LOGP_REF)) != 0;
}

rlhf_status rlhf__rewards_check_limits(const struct rlhf__config *c,
                                       struct rlhf__instance *const *rewards,
                                       const struct rlhf__instance *judge,
                                       struct rlhf__error *err) {
    static const char inside[] = "all rewards do their work inside the process";
    static const char late[] = "no reward does its work outside the process (RLHF_REWARD_EXTERNAL) "
                               "without state";
    static const char logps[] =
        "the rewards that do their work outside the process need log-probs, "
        "which are there only when all rows are";
    int outside = judge && is_outside(judge), early = 0, wait = 0;
    for (size_t i = 0; i < c->n_reward; i++) {
        outside |= is_outside(rewards[i]);
        early |= rlhf__overlap_allowed(rewards[i]);
        wait |= needs_logps(rewards[i]);
    }
    if (c->mixing.overlap && !early)
        RLHF_TRY(rlhf__effect_refuse_typed(c, "rewards.overlap", wait ? logps : late, err));
    // an environment may run a program or ask a service
    if (outside || c->environment.plugin) return RLHF_OK;
    RLHF_TRY(rlhf__effect_refuse_typed(c, "rewards.timeout_s", inside, err));
    return rlhf__effect_refuse_typed(c, "rewards.memory_mib", inside, err);
}

rlhf_status rlhf__check_rows(const struct rlhf__instance *of, const struct rlhf__prompts *prompts,
                             int held_out, const struct rlhf__watch *watch,
                             struct rlhf__error *err) {
    const int plays = of->plugin->desc.kind == RLHF_KIND_ENVIRONMENT;
    rlhf_status (*const check)(void *, const rlhf_row_in *) =
        plays ? of->plugin->ops.environment.check_row : of->plugin->ops.reward.check_row;
    const int64_t n = check && prompts ? rlhf__prompts_count(prompts) : 0;
    for (int64_t i = 0; i < n; i++) {
        const struct rlhf__prompt p = rlhf__prompts_get(prompts, i);
        rlhf_row_in row = {.held_out = held_out, .index = i, .meta = p.meta, .prompt = p.text};
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_row_in, &row, of->plugin->abi_minor, &tails);
        char where[512];
        if (i % 1024 == 0) {
            if (watch) rlhf__watch_seen(watch, "checking the data rows", i, n);
            if (of->host->cancelled(of->host)) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        }
        const struct rlhf__call call = rlhf__call_begin(of, "check_row()");
        const rlhf_status st = rlhf__call_wrote(&call, &tails, check(of->self, &row), err);
        if (st == RLHF_OK) continue;
        rlhf__prompts_where(prompts, i, where, sizeof where);
        return *where ? rlhf__error_context(err, "%s", where) : st;
    }
    return RLHF_OK;
}

void rlhf__rewards_close(struct rlhf__instance **rewards, size_t n) {
    for (size_t i = 0; rewards && i < n; i++)
        rlhf__instance_close(rewards[i]);
    free(rewards);
}
