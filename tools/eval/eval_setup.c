// eval_setup.c: see eval_setup.h.
#include "eval/eval_setup.h"

#include "base/json.h"
#include "config/effect.h"
#include "model/text_note.h"
#include "sample/rewards.h"
#include "weights/run_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// This command uses only settings for sampling and scoring. It rejects other settings on the
// command line, and ignores other settings in a run's config.
static rlhf_status check_effect(const struct rlhf__eval_setup *t,
                                const struct rlhf__eval_setup_options *o, struct rlhf__error *err) {
    const char *who = o->command;
    static const char why[] = "looks at sampling, prompts and response settings only";
    const struct rlhf__effect_rule rules[] = {
        {"run.", 1, who, why, NULL},
        {"compute.", 1, who, why, NULL},
        {"policy.", 1, who, why, NULL},
        {"reference.", 1, who, why, NULL},
        {"value.", 1, who, why, NULL},
        {"score.", 1, who, why, NULL},
        {"data.", 1, who, why, "data.max_mib"},
        {"rewards.retries", t->config.mixing.on_failure != RLHF__FAILURE_RETRY, NULL,
         "rewards.on_failure is not retry", NULL},
        {"rewards.", 1, who, why,
         "rewards.nan_policy rewards.on_failure rewards.retries rewards.isolate rewards.timeout_s "
         "rewards.memory_mib rewards.workers"},
        {"batch.", 1, who, why, NULL},
        {"optim.", 1, who, why, NULL},
        {"early_stop.", 1, who, why, NULL},
        {"checkpoint.", 1, who, why, NULL},
        {"log.", 1, who, why, "log.progress"},
        {"prompts.path", o->prompts != NULL, NULL, "a flag names the prompts", NULL},
        {"prompts.text", o->prompts != NULL, NULL, "a flag names the prompts", NULL},
        {"prompts.limit", o->limit > 0, NULL, "--limit is given", NULL},
        {"prompts.shuffle", 1, who, "uses the prompts in turn", NULL},
        {"sampling.slots", 1, who, "chooses it", NULL},
        {"episodes.", o->environment == NULL, NULL, "there is no environment (--env)", NULL},
    };
    return rlhf__effect_check(&t->config, rules, sizeof rules / sizeof *rules, NULL, err);
}

// Reject a reward that needs a reference if the command has no reference.
static rlhf_status check_rewards(const struct rlhf__eval_setup *t,
                                 const struct rlhf__eval_setup_options *o,
                                 struct rlhf__error *err) {
    const int takes = strcmp(o->command, "eval") == 0;
    for (size_t i = 0; i < t->config.n_reward && !o->reference; i++)
        if (t->reward[i]->ops.reward.flags & RLHF_REWARD_LOGP_REF)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: %s needs the reference's log-probs (RLHF_REWARD_LOGP_REF)%s",
                              o->command, t->reward[i]->file,
                              takes ? ": give the reference with --reference DIR"
                                    : ", and this command has no reference");
    return RLHF_OK;
}

// If --adapter or --model names a run or one of its checkpoints, set *run to the run's
// configuration (a new reference) and `path` to the configuration's file. Otherwise set *run to
// NULL.
static rlhf_status run_config(const struct rlhf__eval_setup_options *o, char path[RLHF__PATH_CAP],
                              json_t **run, struct rlhf__error *err) {
    const char *given = o->at->adapter ? o->at->adapter : o->model;
    char dir[RLHF__PATH_CAP];
    int is_run = 0;
    *run = NULL;
    if (!given || !o->as_the_run || o->config) return RLHF_OK;
    // Opening the model reports the error.
    if (rlhf__run_is(given, &is_run, err) != RLHF_OK) return RLHF_OK;
    if (is_run)
        rlhf__path_put(dir, "%s", given);
    else
        RLHF_TRY(rlhf__run_above(given, dir, err));
    rlhf__path_put(path, "%s/config.json", dir);
    return dir[0] ? rlhf__json_load_any(dir, "config.json", run, err) : RLHF_OK;
}

// If the run sampled responses, copy these sections of its settings: `sampling`, `prompts`,
// `response` and, with an environment, `episodes`. A run that did not sample does not use these
// sections. If the command names prompts, leave out the settings that name the run's prompts.
static rlhf_status take_settings(const struct rlhf__env *env,
                                 const struct rlhf__eval_setup_options *o,
                                 char path[RLHF__PATH_CAP], json_t **out, struct rlhf__error *err) {
    static const char *const sections[] = {"sampling", "prompts", "response", "episodes"};
    static const char *const which[] = {"path", "text", "limit"};
    const size_t n_sections = o->environment ? 4 : 3;
    const char *plugin;
    json_t *run;
    *out = NULL;
    RLHF_TRY(run_config(o, path, &run, err));
    json_t *prompts = json_object_get(run, "prompts");
    const char *file = json_string_value(json_object_get(prompts, "path"));
    plugin = json_string_value(json_object_get(json_object_get(run, "environment"), "plugin"));
    if (json_array_size(json_object_get(run, "reward")) > 0 || (file && *file) || plugin) {
        for (size_t i = 0; o->prompts && i < sizeof which / sizeof *which; i++)
            json_object_del(prompts, which[i]);
        *out = json_object();
        for (size_t i = 0; i < n_sections; i++)
            if (json_object_get(run, sections[i]))
                json_object_set(*out, sections[i], json_object_get(run, sections[i]));
        rlhf__logf(env->log, RLHF_LOG_INFO,
                   "%s: sampling, prompts and response settings as in the run (%s)%s", o->command,
                   path,
                   o->has_set ? "; --set changes one, and --config with this file gives another "
                                "model the same"
                              : "");
    }
    json_decref(run);
    return RLHF_OK;
}

static rlhf_status load_config(struct rlhf__eval_setup *t, const struct rlhf__env *env,
                               const struct rlhf__eval_setup_options *o, struct rlhf__error *err) {
    struct rlhf__config_request req = {.dirs = env->dirs,
                                       .config_file = o->config,
                                       .default_algo = o->config ? NULL : "ppo.so",
                                       .reward = o->reward->item,
                                       .reward_flag = o->reward_flag,
                                       .n_reward = o->reward->n,
                                       .environment = o->environment,
                                       .set = o->set->item,
                                       .n_set = o->set->n};
    // the judge of the run's config; only training uses it
    const struct rlhf__plugin *judge;
    char run[RLHF__PATH_CAP];
    RLHF_TRY(take_settings(env, o, run, &req.settings, err));
    req.settings_from = run;
    rlhf_status st = rlhf__config_load(&req, &t->config, err);
    json_decref(req.settings);
    if (st < 0) rlhf__config_hint(&req, &t->config, err);
    if (st == RLHF_OK)
        st = rlhf__command_setup_init(&t->at, env, o->at, t->config.log.progress, err);
    if (st == RLHF_OK)
        st = rlhf__config_resolve(&t->config, t->at.plugins, &t->algo, &t->reward, &judge, err);
    if (st == RLHF_OK) st = check_rewards(t, o, err);
    if (st == RLHF_OK) st = check_effect(t, o, err);
    t->config.mixing.normalize = RLHF__NORMALIZE_NONE;
    t->config.mixing.clip = 0;
    // Sampling may truncate the distribution (top-p, top-k), but the KL is over full distributions.
    t->logp_dist = (rlhf_dist)RLHF_DIST(1 / t->config.sampling.temperature, 1, 0, 0);
    return st;
}

static rlhf_status open_models(struct rlhf__eval_setup *t, const struct rlhf__eval_setup_options *o,
                               struct rlhf__error *err) {
    rlhf_status st = rlhf__command_setup_start(&t->at, o->seed, err);
    if (st == RLHF_OK) st = rlhf__command_setup_writer(&t->at, o->model, &t->model, err);
    const rlhf_dist dist = rlhf__sampling_dist(&t->config.sampling);
    if (st == RLHF_OK) st = rlhf__compute_draws(t->model->compute, &dist, err);
    if (st == RLHF_OK && t->model->peft.rank > 0) t->at.session.models.shared = t->model;
    if (st != RLHF_OK || !o->reference) return st;
    return rlhf__command_setup_reference(&t->at, o->reference, t->model, &t->reference, err);
}

static int32_t longest_row(const struct rlhf__eval_setup *t) {
    if (t->environment) return t->episodes.limits.tokens;
    return rlhf__prompts_longest(t->prompts) + (int32_t)t->config.sampling.max_new_tokens;
}

// Pass the length of the longest row to the reward-model service, and let the rewards check the
// data rows of the prompts.
static rlhf_status check_prompts(struct rlhf__eval_setup *t, struct rlhf__error *err) {
    rlhf__reward_service_longest(rlhf__text_services_reward(t->at.served), longest_row(t));
    for (size_t i = 0; i < t->config.n_reward; i++)
        RLHF_TRY(rlhf__check_rows(t->rewards[i], t->prompts, 1,
                                  rlhf__progress_watch(t->at.progress), err));
    return RLHF_OK;
}

static rlhf_status open_rewards(struct rlhf__eval_setup *t, const char *flag,
                                struct rlhf__error *err) {
    rlhf__text_services_policy(t->at.served, t->model->tok);
    rlhf__reward_service_longest(rlhf__text_services_reward(t->at.served), longest_row(t));
    const struct rlhf__rewards_request q = {.config = &t->config,
                                            .plugin = t->reward,
                                            .services = &t->at.session.services,
                                            .limits = &t->at.session.limits,
                                            .flag = flag,
                                            .watch = rlhf__progress_watch(t->at.progress)};
    t->tally = calloc(t->config.n_reward + 1, sizeof *t->tally);
    if (!t->tally) return RLHF__NOMEM(err, "out of memory for rewards");
    RLHF_TRY(rlhf__rewards_open(&q, &t->rewards, err));
    RLHF_TRY(rlhf__rewards_check_limits(&t->config, t->rewards, NULL, err));
    return check_prompts(t, err);
}

// ---- the environment ----

static rlhf_status open_environment(struct rlhf__eval_setup *t,
                                    const struct rlhf__eval_setup_options *o,
                                    struct rlhf__error *err) {
    const struct rlhf__plugin *plugin;
    if (!o->environment) return RLHF_OK;
    RLHF_TRY(rlhf__config_resolve_environment(&t->config, t->at.plugins, &plugin, err));
    if (!o->unpaid && o->reward->n == 0 && !(plugin->ops.environment.flags & RLHF_ENVIRONMENT_PAYS))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: %s pays nothing; give a reward with %s X.so",
                          o->command, plugin->file, o->reward_flag);
    RLHF_TRY(rlhf__playing_check_model(plugin->file, t->model, err));
    RLHF_TRY(rlhf__rewards_offer_limits(&t->config, &t->at.session.services, &t->at.session.limits,
                                        err));
    return rlhf__playing_instance_open(plugin, &t->at.session.services, &t->config.environment,
                                       "environment", &t->environment, err);
}

static rlhf_status open_episodes(struct rlhf__eval_setup *t, int alone, struct rlhf__error *err) {
    const struct rlhf__playing p = {.config = &t->config,
                                    .environment = t->environment,
                                    .policy = t->model,
                                    .rules = t->rules,
                                    .prompts = t->prompts,
                                    .alone = alone,
                                    .held_out = 1};
    return t->environment ? rlhf__playing_open(&p, &t->episodes, err) : RLHF_OK;
}

rlhf_status rlhf__eval_setup_sample(const struct rlhf__eval_setup *t,
                                    const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                    struct rlhf__error *err) {
    struct rlhf__episode_setup setup = t->episodes;
    struct rlhf__episode_counts counts;
    if (!t->environment) return rlhf__rollout_in_turn(q, e, err);
    int64_t *row = calloc((size_t)q->n + 1, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u episodes", q->n);
    for (uint32_t i = 0; i < q->n; i++)
        row[i] = (int64_t)(q->first + i) % rlhf__prompts_count(t->prompts);
    setup.model = q->model;
    setup.seed = q->seed;
    setup.drops = 0; // the rows of several models are compared one by one
    const struct rlhf__episodes_request of = {.setup = &setup,
                                              .row = row,
                                              .n = q->n,
                                              .group = 1,
                                              .first = q->first,
                                              .stream = "environment of eval"};
    const rlhf_status st = rlhf__playing_sample(&of, *q, e, NULL, &counts, err);
    free(row);
    return st;
}

rlhf_status rlhf__eval_setup_prompts(struct rlhf__eval_setup *t, const char *file,
                                     struct rlhf__error *err) {
    struct rlhf__prompts_config prompts = t->config.prompts;
    struct rlhf__loading loading = rlhf__command_setup_loading(&t->at, t->max_mib);
    if (file) prompts.path = file;
    if (file) prompts.text = "";
    if (t->limit) prompts.limit = t->limit;
    if (t->max_mib == 0) {
        loading.max_mib = t->config.data.max_mib;
        loading.setting = NULL;
    }
    const int alone = rlhf__playing_alone(t->environment ? t->environment->plugin : NULL, &prompts);
    rlhf__prompts_close(t->prompts);
    t->prompts = NULL;
    if (alone) {
        RLHF_TRY(rlhf__playing_no_prompts(t->model->tok, &t->prompts, err));
        return open_episodes(t, 1, err);
    }
    RLHF_TRY(rlhf__rollout_prompts(&prompts, "prompts.path", t->model, &t->config.sampling,
                                   t->at.env->dirs, t->at.env->log, &loading, &t->prompts, err));
    RLHF_TRY(rlhf__rollout_check_rows(&t->config, t->prompts, err));
    RLHF_TRY(open_episodes(t, 0, err));
    return t->rewards ? check_prompts(t, err) : RLHF_OK;
}

rlhf_status rlhf__eval_setup_open(struct rlhf__eval_setup *t, const struct rlhf__env *env,
                                  const struct rlhf__eval_setup_options *o,
                                  struct rlhf__error *err) {
    rlhf_status st = load_config(t, env, o, err);
    if (st == RLHF_OK) st = open_models(t, o, err);
    if (st == RLHF_OK) st = rlhf__rollout_check_model(&t->config, t->model, env->log, err);
    if (st != RLHF_OK) return st;
    t->limit = o->limit;
    t->max_mib = o->max_mib;
    rlhf__model_prepend_bos(t->model, t->config.prompts.prepend_bos);
    RLHF_TRY(rlhf__model_choose_chat(t->model, &t->config.prompts, err));
    st = rlhf__response_rules_open(&t->config.sampling, &t->config.response, t->model->tok,
                                   &t->rules, err);
    if (st == RLHF_OK) st = open_environment(t, o, err);
    if (st == RLHF_OK) st = rlhf__eval_setup_prompts(t, o->prompts, err);
    return st == RLHF_OK ? open_rewards(t, o->reward_flag, err) : st;
}

// Find the policy that a run began with. A run may have begun with an adapter of another run. Any
// other adapter began on the model below it.
static rlhf_status base_of(const struct rlhf__eval_setup *t, const json_t *run,
                           char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    const struct rlhf__model *m = t->model;
    const json_t *policy = json_object_get(run, "policy");
    const char *base = json_string_value(json_object_get(policy, "path"));
    const char *adapter = json_string_value(json_object_get(policy, "adapter.path"));
    if (adapter && *adapter)
        rlhf__path_put(out, "%s", adapter);
    else if (m->peft.rank > 0)
        rlhf__path_put(out, "%s", m->dir);
    else if (base && *base)
        rlhf__path_put(out, "%s", base);
    else if (run)
        rlhf__default_model(t->at.env->dirs, "policy", out);
    else
        return rlhf__fail(err, RLHF_E_INVALID,
                          "eval: --compare base is the policy that a run began with, or the model "
                          "below an adapter, and '%s' is neither; name a directory",
                          m->dir);
    return RLHF_OK;
}

rlhf_status rlhf__eval_setup_base(const struct rlhf__eval_setup *t, char out[RLHF__PATH_CAP],
                                  struct rlhf__error *err) {
    const struct rlhf__model *m = t->model;
    json_t *run;
    RLHF_TRY(rlhf__command_setup_run_config(&t->at, m->peft.dir ? m->peft.dir : m->dir, &run, err));
    const rlhf_status st = base_of(t, run, out, err);
    json_decref(run);
    return st;
}

static void say_failures(const struct rlhf__eval_setup *t) {
    char name[192];
    for (size_t i = 0; t->tally && i < t->config.n_reward; i++) {
        snprintf(name, sizeof name, "reward %s", t->config.reward[i].name);
        rlhf__reward_tally_say(&t->tally[i], name, t->at.env->log);
    }
}

void rlhf__eval_setup_finish(struct rlhf__eval_setup *t) {
    say_failures(t);
    free(t->tally);
    rlhf__rewards_close(t->rewards, t->config.n_reward);
    rlhf__playing_close(&t->episodes);
    rlhf__instance_close(t->environment);
    free(t->reward);
    rlhf__prompts_close(t->prompts);
    rlhf__response_rules_close(t->rules);
    rlhf__model_close(t->reference);
    rlhf__model_close(t->model);
    rlhf__command_setup_finish(&t->at);
    rlhf__config_finish(&t->config);
}

struct rlhf__rollout_request rlhf__eval_setup_request(const struct rlhf__eval_setup *t, uint32_t n,
                                                      uint32_t slots, int64_t seed,
                                                      const char *stream) {
    struct rlhf__rollout_request q =
        rlhf__rollout_request(&t->config, t->model, t->prompts, t->rules);
    q.n = n;
    q.slots = slots;
    q.logp_dist = t->logp_dist;
    q.seed = (uint64_t)seed;
    q.stream = stream;
    q.cancelled = t->at.env->cancelled;
    return q;
}

rlhf_status rlhf__eval_setup_score(const struct rlhf__eval_setup *t, struct rlhf__rows *e,
                                   struct rlhf__scored *x, uint8_t *keep, float *raw,
                                   uint8_t *missing, struct rlhf__metrics *reported,
                                   struct rlhf__error *err) {
    const struct rlhf__scorer s = {.config = &t->config,
                                   .rewards = t->rewards,
                                   .reported = reported ? rlhf__metrics_reported : NULL,
                                   .metric_ctx = reported,
                                   .log = t->at.env->log,
                                   .tally = t->tally,
                                   .missing = missing};
    const struct rlhf__scored_by by = {&t->config.response, t->rules, t->prompts};
    rlhf_status st = rlhf__scored_init(x, &by, e, err);
    return st == RLHF_OK ? rlhf__score(&s, x, e, keep, raw, err) : st;
}
