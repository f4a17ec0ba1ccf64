// playing.c: see playing.h.
#include "episode/playing.h"

#include "sample/rewards.h"

#include <stdlib.h>
#include <string.h>

// ---- the environment ----

rlhf_status rlhf__playing_instance_open(const struct rlhf__plugin *p,
                                        struct rlhf__services *services,
                                        const struct rlhf__plugin_config *c, const char *section,
                                        struct rlhf__instance **out, struct rlhf__error *err) {
    const struct rlhf__origin from = {"the config", section, NULL, 0, 0};
    return rlhf__instance_open(p, services, "environment", c->options, &from, out, err);
}

rlhf_status rlhf__playing_check_model(const char *file, const struct rlhf__model *m,
                                      struct rlhf__error *err) {
    if (m->info.caps & RLHF_CAP_TURNS) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s: rows have several turns, which %s cannot compute for '%s' "
                      "(RLHF_CAP_TURNS)",
                      file, m->instance->plugin->file, m->dir);
}

// ---- prompts ----

int rlhf__playing_alone(const struct rlhf__plugin *e, const struct rlhf__prompts_config *c) {
    return e && (e->ops.environment.flags & RLHF_ENVIRONMENT_TASKS) && !c->path[0] && !c->text[0];
}

rlhf_status rlhf__playing_no_prompts(const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                                     struct rlhf__error *err) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    const int32_t id = info->bos >= 0 ? info->bos : info->eos >= 0 ? info->eos : 0, len = 1;
    const int32_t *ids = &id;
    return rlhf__prompts_from_ids(&ids, &len, 1, tok, out, err);
}

// Set the tools and the limits, and check the data rows and the template. The limits must allow for
// the tools that the template lists in prompts.
static rlhf_status finish_setup(const struct rlhf__playing *p, struct rlhf__episode_setup *out,
                                struct rlhf__error *err) {
    const struct rlhf__config *c = p->config;
    const struct rlhf__chat *chat = rlhf__tokenizer_chat(p->policy->tok);
    struct rlhf__episode_prompt longest;
    RLHF_TRY(rlhf__episode_tools_open(p->environment, &c->episodes, out->chat ? chat : NULL,
                                      &out->tools, err));
    RLHF_TRY(rlhf__episode_tools_tokens(&out->tools, p->policy->tok, &longest.tools, err));
    longest.tokens = rlhf__prompts_longest(p->prompts) + longest.tools;
    RLHF_TRY(rlhf__episode_limits(c, p->policy->info.n_ctx, &longest, &out->limits, err));
    RLHF_TRY(rlhf__check_rows(p->environment, p->prompts, p->held_out, NULL, err));
    return rlhf__episode_check_template(out, err);
}

// The template decides about BOS in prompts of messages.
rlhf_status rlhf__playing_open(const struct rlhf__playing *p, struct rlhf__episode_setup *out,
                               struct rlhf__error *err) {
    const struct rlhf__config *c = p->config;
    const char *template = rlhf__chat_known(rlhf__tokenizer_chat(p->policy->tok));
    const int64_t chats = rlhf__prompts_chats(p->prompts), n = rlhf__prompts_count(p->prompts);
    if (chats != 0 && chats != n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "prompts.path: %lld of %lld prompts are messages and the others texts; "
                          "with an environment all must be of one kind",
                          (long long)chats, (long long)n);
    const int templated = template && strcmp(template, "plain") != 0;
    *out = (struct rlhf__episode_setup){.environment = p->environment,
                                        .model = p->policy,
                                        .rules = p->rules,
                                        .prompts = p->prompts,
                                        .field = c->prompts.field,
                                        .alone = p->alone,
                                        .chat = templated && (p->alone || chats > 0),
                                        .bos = rlhf__tokenizer_has_bos(p->policy->tok),
                                        .seed = p->seed,
                                        .timeout_s = c->mixing.timeout_s,
                                        .retries = c->episodes.retries,
                                        .drops = c->episodes.on_failure == RLHF__EPISODE_DROP,
                                        .refuses = c->episodes.rewrites == RLHF__REWRITES_REFUSE,
                                        .any_start = c->episodes.starts == RLHF__STARTS_ANY};
    const rlhf_status st = finish_setup(p, out, err);
    if (st != RLHF_OK) rlhf__playing_close(out);
    return st;
}

void rlhf__playing_close(struct rlhf__episode_setup *s) { rlhf__episode_tools_finish(&s->tools); }

// ---- rows ----

rlhf_status rlhf__playing_leave_out(const struct rlhf__episodes_request *of, const uint8_t *lost,
                                    struct rlhf__rows *e, struct rlhf__error *err) {
    struct rlhf__rows left = {0};
    uint32_t n = 0, *pick = calloc((size_t)e->n + 1, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    for (uint32_t i = 0; i < e->n; i++)
        if (!lost[i]) pick[n++] = i;
    rlhf_status st = RLHF_OK;
    if (n == 0)
        st = rlhf__fail(err, RLHF_E_IO,
                        "environment %s, phase %lld: all %u episodes failed, so no row is left "
                        "(episodes.on_failure is drop)",
                        rlhf__plugin_name(of->setup->environment->plugin), (long long)of->phase + 1,
                        e->n);
    else if (n < e->n)
        st = rlhf__rows_pick(&left, e, pick, n, err);
    if (st == RLHF_OK && left.n) {
        rlhf__rows_finish(e);
        *e = left;
    }
    free(pick);
    return st;
}

rlhf_status rlhf__playing_all(const struct rlhf__episodes_request *of,
                              struct rlhf__rollout_request q, struct rlhf__rows *e, uint8_t *lost,
                              int64_t *tokens, struct rlhf__episode_counts *counts,
                              struct rlhf__error *err) {
    const struct rlhf__instance *environment = of->setup->environment;
    struct rlhf__episodes *episodes;
    RLHF_TRY(rlhf__episodes_open(of, &episodes, err));
    if (of->metric) rlhf__instance_metrics_to(environment, of->metric, of->metric_ctx);
    q.turns = rlhf__episodes_turns(episodes);
    q.turn_prompt = rlhf__episodes_prompt(episodes);
    q.turn_prompt_len = rlhf__episodes_prompt_len(episodes);
    rlhf_status st = rlhf__rollout(&q, of->row, e, tokens, err);
    if (st == RLHF_OK) rlhf__episodes_take(episodes, e);
    for (uint32_t i = 0; i < of->n; i++)
        lost[i] = (uint8_t)rlhf__episodes_is_lost(episodes, i);
    *counts = rlhf__episodes_counts(episodes);
    rlhf__episodes_close(episodes);
    if (of->metric) rlhf__instance_metrics_to(environment, NULL, NULL);
    return st;
}

rlhf_status rlhf__playing_sample(const struct rlhf__episodes_request *of,
                                 struct rlhf__rollout_request q, struct rlhf__rows *e,
                                 int64_t *tokens, struct rlhf__episode_counts *counts,
                                 struct rlhf__error *err) {
    uint8_t *lost = calloc((size_t)of->n + 1, 1);
    if (!lost) return RLHF__NOMEM(err, "out of memory for %u episodes", of->n);
    rlhf_status st = rlhf__playing_all(of, q, e, lost, tokens, counts, err);
    if (st == RLHF_OK) st = rlhf__playing_leave_out(of, lost, e, err);
    free(lost);
    return st;
}
