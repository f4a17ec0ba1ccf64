// judged.c: see judged.h.
#include "cmd/judged.h"

#include "config/effect.h"

#include <stdlib.h>

// Only how texts are sampled and judged is taken from the settings. A run's --config has more,
// which is no news; what was typed for nothing is.
static rlhf_status check_effect(const struct rlhf__judged *j, const struct rlhf__judged_options *o,
                                struct rlhf__error *err) {
    const char *who = o->command, *bar = o->shows_progress ? "log.progress" : NULL;
    static const char why[] = "looks at sampling, prompts and response settings only";
    const struct rlhf__effect_rule rules[] = {
        {"run.", 1, 0, who, why, NULL},
        {"compute.", 1, 0, who, why, NULL},
        {"policy.", 1, 0, who, why, NULL},
        {"reference.", 1, 0, who, why, NULL},
        {"value.", 1, 0, who, why, NULL},
        {"score.", 1, 0, who, why, NULL},
        {"data.", 1, 0, who, why, "data.max_mib"},
        {"rewards.", 1, 0, who, why, "rewards.nan_policy"},
        {"batch.", 1, 0, who, why, NULL},
        {"optim.", 1, 0, who, why, NULL},
        {"early_stop.", 1, 0, who, why, NULL},
        {"checkpoint.", 1, 0, who, why, NULL},
        {"log.", 1, 0, who, why, bar},
        {"prompts.path", o->prompts != NULL, 0, NULL, "a flag names the prompts", NULL},
        {"prompts.text", o->prompts != NULL, 0, NULL, "a flag names the prompts", NULL},
        {"prompts.limit", o->limit > 0, 0, NULL, "--limit is given", NULL},
        {"prompts.shuffle", 1, 0, who, "uses the prompts in turn", NULL},
        {"sampling.slots", 1, 0, who, "chooses it", NULL},
    };
    return rlhf__effect_check(&j->config, rules, sizeof rules / sizeof *rules, NULL, err);
}

static rlhf_status load_config(struct rlhf__judged *j, const struct rlhf__judged_options *o,
                               struct rlhf__error *err) {
    struct rlhf__config_request req = {.dirs = j->env->dirs,
                                       .config_file = o->config,
                                       .default_algo = o->config ? NULL : "ppo.so",
                                       .reward = o->reward->item,
                                       .reward_flag = o->reward_flag,
                                       .n_reward = o->reward->n,
                                       .set = o->set->item,
                                       .n_set = o->set->n};
    const struct rlhf__plugin *judge; // of a run's config: looked on in training only
    rlhf_status st = rlhf__config_load(&req, &j->config, err);
    if (st < 0) rlhf__config_hint(&req, &j->config, err);
    if (st == RLHF_OK) st = rlhf__plugins_create(j->env->dirs, &j->plugins, err);
    if (st == RLHF_OK)
        st = rlhf__config_resolve(&j->config, j->plugins, &j->algo, &j->reward, &judge, err);
    if (st == RLHF_OK) st = check_effect(j, o, err);
    j->config.rewards.normalize = RLHF__NORMALIZE_NONE;
    j->config.rewards.clip = 0;
    const struct rlhf__sampling_config *s = &j->config.sampling;
    j->dist = (rlhf_dist){1 / s->temperature, s->top_p, (int32_t)s->top_k, 0};
    j->logp_dist = (rlhf_dist){1 / s->temperature, 1, 0, 0}; // KL is of whole distributions
    return st;
}

static rlhf_status open_models(struct rlhf__judged *j, const struct rlhf__judged_options *o,
                               struct rlhf__error *err) {
    struct rlhf__run_config run = {.seed = o->seed, .threads = o->threads};
    struct rlhf__compute_config compute = {.backend = o->backend};
    char built_in[2048];
    rlhf__default_model(j->env->dirs, "policy", built_in);
    rlhf_status st = rlhf__dtype_choice(o->dtype, "--dtype", &compute.dtype, err);
    if (st == RLHF_OK)
        st = rlhf__session_init(&j->session, j->env->dirs, j->env->log, j->env->cancelled,
                                j->plugins, &compute, &run, err);
    struct rlhf__model_spec spec = {
        .dir = o->model ? o->model : built_in, .role = "model", .frozen = 1};
    if (st == RLHF_OK) st = rlhf__model_open(&j->session.models, &spec, &j->model, err);
    if (st == RLHF_OK) st = rlhf__model_writes(j->model, err);
    if (st != RLHF_OK || !o->reference) return st;
    struct rlhf__model_spec ref = {.dir = o->reference, .role = "reference", .frozen = 1};
    st = rlhf__model_open(&j->session.models, &ref, &j->reference, err);
    if (st == RLHF_OK && !rlhf__tokenizer_equal(j->reference->tok, j->model->tok))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the vocabulary of the reference '%s' is not the model's ('%s')",
                          j->reference->dir, j->model->dir);
    return st;
}

static rlhf_status open_rewards(struct rlhf__judged *j, const char *flag, struct rlhf__error *err) {
    rlhf__text_services_policy(j->session.text, j->model->tok);
    rlhf__reward_service_longest(rlhf__text_services_reward(j->session.text),
                                 rlhf__prompts_longest(j->prompts) +
                                     (int32_t)j->config.sampling.max_new_tokens);
    j->rewards = calloc(j->config.n_reward ? j->config.n_reward : 1, sizeof *j->rewards);
    if (!j->rewards) return RLHF__NOMEM(err, "out of memory for rewards");
    for (size_t i = 0; i < j->config.n_reward; i++) {
        struct rlhf__origin from = {flag, "", NULL, 0, 0, 0};
        rlhf_status st =
            rlhf__instance_create(j->reward[i], &j->session.services, j->config.reward[i].options,
                                  &from, &j->rewards[i], err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}

rlhf_status rlhf__judged_open(struct rlhf__judged *j, const struct rlhf__env *env,
                              const struct rlhf__judged_options *o, struct rlhf__error *err) {
    j->env = env;
    rlhf_status st = load_config(j, o, err);
    if (st == RLHF_OK) st = open_models(j, o, err);
    if (st != RLHF_OK) return st;
    struct rlhf__prompts_config prompts = j->config.prompts;
    if (o->prompts) prompts.path = o->prompts;
    if (o->prompts) prompts.text = "";
    if (o->limit) prompts.limit = o->limit;
    struct rlhf__loading loading = {.max_mib = j->config.data.max_mib, .cancelled = env->cancelled};
    if (o->max_mib > 0) {
        loading.max_mib = o->max_mib;
        loading.setting = "--max-mib";
    }
    st = rlhf__rollout_prompts(&prompts, j->model, (int32_t)j->config.sampling.max_new_tokens,
                               env->dirs, env->log, &loading, &j->prompts, err);
    if (st == RLHF_OK)
        st = rlhf__response_rules_create(&j->config.sampling, &j->config.response, j->model->tok,
                                         &j->rules, err);
    return st == RLHF_OK ? open_rewards(j, o->reward_flag, err) : st;
}

void rlhf__judged_finish(struct rlhf__judged *j) {
    for (size_t i = 0; j->rewards && i < j->config.n_reward; i++)
        rlhf__instance_destroy(j->rewards[i]);
    free(j->rewards);
    free(j->reward);
    rlhf__prompts_close(j->prompts);
    rlhf__response_rules_destroy(j->rules);
    rlhf__model_close(j->reference);
    rlhf__model_close(j->model);
    rlhf__session_finish(&j->session);
    rlhf__plugins_destroy(j->plugins);
    rlhf__config_free(&j->config);
}

struct rlhf__rollout_request rlhf__judged_request(const struct rlhf__judged *j, uint32_t n,
                                                  uint32_t slots, int64_t seed,
                                                  const char *stream) {
    return (struct rlhf__rollout_request){.model = j->model,
                                          .prompts = j->prompts,
                                          .n = n,
                                          .slots = slots,
                                          .max_new = (int32_t)j->config.sampling.max_new_tokens,
                                          .stop_at_eos = j->config.sampling.stop_at_eos,
                                          .cut_at_stop =
                                              j->config.response.truncate == RLHF__TRUNCATE_STOP,
                                          .rules = j->rules,
                                          .dist = &j->dist,
                                          .logp_dist = &j->logp_dist,
                                          .seed = (uint64_t)seed,
                                          .stream = stream,
                                          .cancelled = j->env->cancelled};
}

rlhf_status rlhf__judged_score(const struct rlhf__judged *j, struct rlhf__episodes *e,
                               struct rlhf__scored *x, uint8_t *keep, float *raw,
                               struct rlhf__error *err) {
    struct rlhf__scorer s = {.config = &j->config, .rewards = j->rewards, .rules = j->rules};
    struct rlhf__prompt *prompt = calloc(e->n ? e->n : 1, sizeof *prompt);
    if (!prompt) return RLHF__NOMEM(err, "out of memory scoring");
    for (uint32_t i = 0; i < e->n; i++)
        prompt[i] = rlhf__prompts_get(j->prompts, e->source[i]);
    rlhf_status st = rlhf__scored_init(x, &s, e, prompt, err);
    if (st == RLHF_OK) st = rlhf__score(&s, x, e, keep, raw, err);
    free(prompt);
    return st;
}
