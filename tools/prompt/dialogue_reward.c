// dialogue_reward.c: see dialogue_reward.h.
#include "prompt/dialogue_reward.h"

#include "config/config.h"
#include "sample/rewards.h"
#include "sample/scoring.h"

#include <stdlib.h>
#include <string.h>

struct rlhf__dialogue_reward {
    struct rlhf__config config;         // with this one reward
    const struct rlhf__plugin **plugin; // [1]
    struct rlhf__instance **reward;     // [1]
    struct rlhf__log *log;
};

static rlhf_status load(struct rlhf__command_setup *w, const char *plugin,
                        struct rlhf__dialogue_reward *r, struct rlhf__error *err) {
    const struct rlhf__config_request q = {.dirs = w->env->dirs,
                                           .default_algo = "ppo.so",
                                           .reward = &plugin,
                                           .n_reward = 1,
                                           .reward_flag = "/reward"};
    const struct rlhf__plugin *algo, *judge;
    RLHF_TRY(rlhf__config_load(&q, &r->config, err));
    RLHF_TRY(rlhf__config_resolve(&r->config, w->plugins, &algo, &r->plugin, &judge, err));
    if (r->plugin[0]->ops.reward.flags & RLHF_REWARD_LOGP_REF)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "/reward: %s needs the reference's log-probs, and a dialogue has none",
                          plugin);
    return RLHF_OK;
}

rlhf_status rlhf__dialogue_reward_open(struct rlhf__command_setup *w, const struct rlhf__model *m,
                                       const char *plugin, struct rlhf__dialogue_reward **out,
                                       struct rlhf__error *err) {
    struct rlhf__dialogue_reward *r = *out = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for a reward");
    r->log = w->env->log;
    rlhf_status st = load(w, plugin, r, err);
    if (st == RLHF_OK) {
        const struct rlhf__rewards_request q = {.config = &r->config,
                                                .plugin = r->plugin,
                                                .services = &w->session.services,
                                                .limits = &w->session.limits,
                                                .flag = "/reward"};
        rlhf__text_services_policy(w->served, m->tok);
        rlhf__reward_service_longest(rlhf__text_services_reward(w->served), m->info.n_ctx);
        st = rlhf__rewards_open(&q, &r->reward, err);
    }
    if (st == RLHF_OK) return st;
    rlhf__dialogue_reward_close(r);
    *out = NULL;
    return st;
}

void rlhf__dialogue_reward_close(struct rlhf__dialogue_reward *r) {
    if (!r) return;
    rlhf__rewards_close(r->reward, r->config.n_reward);
    free(r->plugin);
    rlhf__config_finish(&r->config);
    free(r);
}

static rlhf_status make_row(const struct rlhf__ids *prompt, const struct rlhf__answer *a,
                            struct rlhf__rows *e, struct rlhf__error *err) {
    const size_t total = prompt->n + a->n, bytes = sizeof *e->ids;
    RLHF_TRY(rlhf__rows_init(e, 1, (uint32_t)total, err));
    e->flags |= RLHF__DRAWN;
    memcpy(e->ids, prompt->data, prompt->n * bytes);
    memcpy(e->ids + prompt->n, a->ids, a->n * bytes);
    memcpy(e->token[RLHF__LOGP_OLD] + prompt->n, a->logp, a->n * sizeof(float));
    memcpy(e->token[RLHF__LOGP_SAMPLED] + prompt->n, a->logp, a->n * sizeof(float));
    e->offset[1] = (int32_t)total;
    e->prompt_len[0] = (int32_t)prompt->n;
    e->source[0] = -1; // not a row of the run's prompts
    e->finished[0] = (uint8_t)a->finished;
    return RLHF_OK;
}

rlhf_status rlhf__dialogue_reward_score(struct rlhf__dialogue_reward *r, rlhf_str text,
                                        const struct rlhf__ids *prompt,
                                        const struct rlhf__answer *a, double *score,
                                        struct rlhf__error *err) {
    struct rlhf__rows e = {0};
    rlhf_str response = {rlhf__buf_text(&a->text), a->text.len}, meta = {NULL, 0};
    int32_t scored_len = (int32_t)a->n;
    uint8_t no_period = 0, verdict = 0, failed = 0;
    float raw = 0;
    struct rlhf__scored x = {.prompt = &text,
                             .response = &response,
                             .meta = &meta,
                             .scored_len = &scored_len,
                             .no_period = &no_period,
                             .verdict = &verdict,
                             .n = 1};
    const struct rlhf__reward_call q = {
        .rules = &r->config.mixing, .plugin = r->reward[0], .trains = 0, .log = r->log};
    rlhf_status st = make_row(prompt, a, &e, err);
    if (st == RLHF_OK) st = rlhf__score_alone(NULL, &q, &x, &e, &raw, &failed, err);
    if (st == RLHF_OK && failed)
        st = rlhf__fail(err, RLHF_E_INVALID, "the reward could not score the text");
    *score = (double)raw;
    rlhf__rows_finish(&e);
    return st;
}
