// setup.c: rlhf__run_create and rlhf__run_destroy of run.h.
#include "run/setup.h"
#include "run/checkpoint.h"
#include "run/completions.h"
#include "run/effect_rules.h"
#include "run/manifest.h"
#include "run/plan.h"
#include "run/reference.h"
#include "run/rollout_source.h"
#include "run/run.h"
#include "run/run_dir.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PHASES 100 // of a rollout algorithm whose config file names no number

static void default_policy(const struct rlhf__run *t, char out[2048]) {
    rlhf__default_model(t->req->env->dirs, "policy", out);
}

static rlhf_status open_compute(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    const struct rlhf__env *env = t->req->env;
    rlhf_status st = rlhf__session_init(&t->session, env->dirs, t->report.log, env->cancelled,
                                        t->req->plugins, &c->compute, &c->run, err);
    if (st != RLHF_OK) return st;
    const rlhf_compute *table = t->session.compute->table;
    rlhf__logf(t->report.log, RLHF_LOG_INFO, "compute: %s, %s, products in %s", table->name,
               table->detail, t->session.models.dtype == RLHF_BF16 ? "bf16" : "f32");
    return RLHF_OK;
}

static rlhf_status ask_plan(struct rlhf__run *t, int64_t phases, int32_t n_labels, rlhf_plan *out,
                            struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    rlhf_run_info info = {.size = sizeof info,
                          .phases = (int32_t)(phases < INT32_MAX ? phases : INT32_MAX),
                          .batch_size = (int32_t)c->batch.size,
                          .max_new_tokens = (int32_t)c->sampling.max_new_tokens,
                          .n_labels = n_labels,
                          .temperature = c->sampling.temperature};
    return rlhf__plan_ask(t->cast.algo, &info, out, err);
}

// The plan tells which heads and which kind of rows the run needs. Labels and phases of a
// supervised run are known only after its rows are read: it is asked again then
// (rlhf__setup_check_plan).
static rlhf_status make_plan(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    struct rlhf__origin from = {"the config", "algo", NULL, 0, 0, 0};
    rlhf_status st = rlhf__instance_create(t->req->algo, &t->session.services, c->algo.options,
                                           &from, &t->cast.algo, err);
    if (st == RLHF_OK)
        st = ask_plan(t, c->run.phases ? c->run.phases : DEFAULT_PHASES, 0, &t->cast.plan, err);
    if (st != RLHF_OK) return st;
    if ((t->cast.plan.heads & RLHF_HEAD_VALUE) && c->value.kind == RLHF_VALUE_NONE)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s wants a value head, but value.kind is none; linear or mlp is allowed",
                          t->cast.algo->plugin->desc.id);
    return rlhf__early_stop_check(&c->early_stop, t->req->algo->file,
                                  t->cast.plan.source == RLHF_SOURCE_ROLLOUT,
                                  rlhf__plan_compares(&t->cast.plan), err);
}

rlhf_status rlhf__setup_check_plan(struct rlhf__run *t, int32_t n_labels, struct rlhf__error *err) {
    rlhf_plan again;
    rlhf_status st = ask_plan(t, t->count.phases, n_labels, &again, err);
    return st == RLHF_OK ? rlhf__plan_same(t->cast.algo, &t->cast.plan, &again, err) : st;
}

static int wants_value(const struct rlhf__run *t) {
    return (t->cast.plan.heads & RLHF_HEAD_VALUE) != 0;
}

void rlhf__setup_policy_dir(const struct rlhf__run *t, char out[4200]) {
    const char *path = t->config->policy.path;
    if (t->req->resume)
        snprintf(out, 4200, "%s", t->req->dir->checkpoint);
    else if (path[0])
        snprintf(out, 4200, "%s", path);
    else
        default_policy(t, out);
}

rlhf_status rlhf__setup_policy(struct rlhf__run *t, const struct rlhf__setup_head *head,
                               struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    char dir[4200];
    rlhf__setup_policy_dir(t, dir);
    int value = wants_value(t) && c->value.critic == RLHF__CRITIC_SHARED;
    struct rlhf__model_spec spec = {
        .dir = dir,
        .role = "policy",
        .start = c->policy.init == RLHF__INIT_RANDOM ? RLHF__START_RANDOM : RLHF__START_HEADS,
        .trainable = 1,
        .n_labels = head->n_labels,
        .pooling = head->pooling,
        .score_init = head->init,
        .value_kind = value ? c->value.kind : RLHF_VALUE_NONE,
        .value_init = c->value.init,
        .value_detach = c->value.detach};
    if (t->req->resume) spec.start = RLHF__START_EMPTY;
    rlhf__progress_note(t->report.progress, "loading the policy");
    rlhf_status st = rlhf__model_open(&t->session.models, &spec, &t->cast.policy, err);
    if (st != RLHF_OK) return rlhf__is_dir(dir) ? st : rlhf__error_context(err, "policy.path");
    rlhf__text_services_policy(t->session.text, t->cast.policy->tok);
    uint32_t lacking = t->cast.plan.heads & ~t->cast.policy->info.heads;
    if (!value) lacking &= ~(uint32_t)RLHF_HEAD_VALUE;
    if (!lacking) return RLHF_OK;
    if (lacking & RLHF_HEAD_LOGP) RLHF_TRY(rlhf__model_writes(t->cast.policy, err));
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s needs heads that the model '%s' (%s) does not have", t->req->algo->file,
                      t->cast.policy->dir, t->cast.policy->instance->plugin->file);
}

// A critic of its own, from value.path or from where the policy starts.
static rlhf_status open_critic(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    if (!wants_value(t) || c->value.critic == RLHF__CRITIC_SHARED) return RLHF_OK;
    struct rlhf__model_spec spec = {.dir = c->value.path[0] ? c->value.path : t->cast.policy->dir,
                                    .role = "critic",
                                    .start = RLHF__START_WEIGHTS,
                                    .trainable = 1,
                                    .value_kind = c->value.kind,
                                    .value_init = c->value.init,
                                    .value_detach = c->value.detach};
    if (c->policy.init == RLHF__INIT_RANDOM && !c->value.path[0]) spec.start = RLHF__START_RANDOM;
    if (t->req->resume) spec.start = RLHF__START_EMPTY;
    rlhf__progress_note(t->report.progress, "loading the critic");
    rlhf_status st = rlhf__model_open(&t->session.models, &spec, &t->cast.critic, err);
    if (st != RLHF_OK) return st;
    if (!rlhf__tokenizer_equal(t->cast.critic->tok, t->cast.policy->tok))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the vocabulary of the critic '%s' is not the policy's ('%s')",
                          t->cast.critic->dir, t->cast.policy->dir);
    struct rlhf__optim_config own = c->optim;
    if (c->value.lr > 0) own.lr = c->value.lr;
    return rlhf__optim_create(t->session.compute->table, t->cast.critic->params,
                              t->cast.critic->n_params, &own, 0, &t->critic_optim, err);
}

static rlhf_status open_rewards(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    if (c->n_reward == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s needs at least one reward: --reward FILE.so (e.g. imdb.so)",
                          t->req->algo->file);
    t->cast.rewards = calloc(c->n_reward, sizeof(void *));
    if (t->cast.rewards) t->cast.n_rewards = c->n_reward;
    if (!t->cast.rewards) return RLHF__NOMEM(err, "out of memory for rewards");
    struct rlhf__reward_service *models = rlhf__text_services_reward(t->session.text);
    rlhf__reward_service_trainable(models, (t->cast.plan.flags & RLHF_PLAN_REWARD_MODEL) != 0);
    rlhf__reward_service_longest(models, rlhf__rollout_source_longest(t->rollout));
    for (size_t i = 0; i < c->n_reward; i++) {
        char section[32], loading[64];
        snprintf(section, sizeof section, "reward.%zu", i);
        snprintf(loading, sizeof loading, "loading %.40s", t->req->rewards[i]->file);
        rlhf__progress_note(t->report.progress, loading);
        struct rlhf__origin from = {"the config", section, NULL, 0, 0, 0};
        rlhf_status st =
            rlhf__instance_create(t->req->rewards[i], &t->session.services, c->reward[i].options,
                                  &from, &t->cast.rewards[i], err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}

// Dist of the log-probs. What top-k and top-p left out while sampling is known from the rows
// (rollout_source.c), not from what they would leave out now.
static rlhf_dist logp_dist(const struct rlhf__run *t) {
    const struct rlhf__sampling_config *s = &t->config->sampling;
    rlhf_dist d = {1, 1, 0, 0};
    if (t->cast.plan.source != RLHF_SOURCE_ROLLOUT) return d;
    if (!(t->cast.plan.flags & RLHF_PLAN_UNIT_TEMPERATURE)) d.inv_temperature = 1 / s->temperature;
    return d;
}

static rlhf_status open_learner(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    rlhf_status st =
        rlhf__optim_create(t->session.compute->table, t->cast.policy->params,
                           t->cast.policy->n_params, &c->optim, c->value.lr, &t->optim, err);
    if (st != RLHF_OK) return st;
    t->learner =
        (struct rlhf__learner){.model = t->cast.policy,
                               .reference = t->cast.reference,
                               .critic = t->cast.critic,
                               .reward_head = rlhf__reward_training_head(t->reward_training),
                               .critic_optim = t->critic_optim,
                               .algo = t->cast.algo,
                               .optim = t->optim,
                               .plan = t->cast.plan,
                               .dist = logp_dist(t),
                               .microbatch_tokens = c->batch.microbatch_tokens,
                               .written_out = !c->batch.share_prompts,
                               .max_new_tokens = c->sampling.max_new_tokens,
                               .watch = rlhf__progress_watch(t->report.progress)};
    return rlhf__early_stop_init(&t->early_stop, &c->early_stop, err);
}

static rlhf_status open_rollout(struct rlhf__run *t, struct rlhf__error *err) {
    rlhf_status st = rlhf__setup_policy(t, &(struct rlhf__setup_head){0}, err);
    if (st == RLHF_OK) st = rlhf__model_writes(t->cast.policy, err);
    if (st == RLHF_OK)
        st = rlhf__response_rules_create(&t->config->sampling, &t->config->response,
                                         t->cast.policy->tok, &t->cast.rules, err);
    if (st == RLHF_OK) st = open_critic(t, err);
    if (st == RLHF_OK) st = rlhf__reference_open(t, err);
    if (st == RLHF_OK) st = rlhf__rollout_source_create(t, &t->rollout, err);
    if (st == RLHF_OK) st = open_rewards(t, err);
    if (t->req->judge) rlhf__progress_note(t->report.progress, "loading the judge");
    if (st == RLHF_OK) st = rlhf__iteration_open(&t->iteration, err);
    t->count.phases = t->config->run.phases > 0 ? t->config->run.phases : DEFAULT_PHASES;
    return st;
}

static rlhf_status open_source(struct rlhf__run *t, struct rlhf__error *err) {
    if (t->cast.plan.source == RLHF_SOURCE_ROLLOUT) return open_rollout(t, err);
    if (t->req->judge)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--judge: %s trains on rows of a file and has no responses to judge",
                          t->req->algo->file);
    if (t->config->n_reward > 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--reward: %s trains on rows of a file and has no responses to pay",
                          t->req->algo->file);
    if (t->config->log.rollouts)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "log.rollouts is true, but %s trains on rows of a file: there are no "
                          "responses to write",
                          t->req->algo->file);
    if (!t->config->data.path[0])
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s trains on a file of rows: give it with --data FILE (data.path)",
                          t->req->algo->file);
    if (t->cast.plan.source != RLHF_SOURCE_TEXT && t->config->data.long_rows == RLHF__DATA_SPLIT)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "data.long_rows is split, but %s trains on whole rows; truncate is allowed",
            t->req->algo->file);
    rlhf_status st = t->cast.plan.source == RLHF_SOURCE_PREFERENCES
                         ? rlhf__setup_preferences(t, err)
                         : rlhf__setup_supervised(t, err);
    return st == RLHF_OK ? rlhf__reference_open(t, err) : st;
}

rlhf_status rlhf__run_create(const struct rlhf__run_request *req, struct rlhf__run **out,
                             struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__run *t = calloc(1, sizeof *t);
    if (!t) return RLHF__NOMEM(err, "out of memory");
    t->report.started = rlhf__seconds();
    t->req = req;
    t->config = req->config;
    t->report.log = req->env->log;
    rlhf_status st =
        rlhf__progress_create(t->config->log.progress, t->report.log, &t->report.progress, err);
    if (st == RLHF_OK) {
        t->loading = (struct rlhf__loading){.max_mib = t->config->data.max_mib,
                                            .cancelled = req->env->cancelled,
                                            .watch = rlhf__progress_watch(t->report.progress)};
        st = open_compute(t, err);
    }
    if (st == RLHF_OK) rlhf__iteration_init(&t->iteration, t);
    if (st == RLHF_OK) st = make_plan(t, err);
    if (st == RLHF_OK) st = rlhf__effect_rules(t, err);
    if (st == RLHF_OK) st = open_source(t, err);
    if (st == RLHF_OK) st = open_learner(t, err);
    int64_t planned = t->config->optim.schedule_phases;
    t->count.horizon = planned > t->count.phases ? planned : t->count.phases;
    if (st == RLHF_OK && req->resume) st = rlhf__manifest_check(t, err);
    if (st == RLHF_OK && req->resume)
        rlhf__progress_note(t->report.progress, "loading the checkpoint");
    if (st == RLHF_OK && req->resume) st = rlhf__checkpoint_load(t, err);
    if (st == RLHF_OK && t->rollout) rlhf__progress_note(t->report.progress, "checking");
    if (st == RLHF_OK && t->rollout) st = rlhf__rollout_source_check(t->rollout, t, err);
    if (st != RLHF_OK) {
        rlhf__run_destroy(t);
        return st;
    }
    *out = t;
    return RLHF_OK;
}

void rlhf__run_destroy(struct rlhf__run *t) {
    if (!t) return;
    rlhf__progress_destroy(t->report.progress);
    rlhf__samples_close(t->report.samples);
    rlhf__shown_finish(&t->report.shown);
    rlhf__rollout_log_close(t->report.rollout_log);
    rlhf__metrics_close(t->report.metrics);
    rlhf__early_stop_finish(&t->early_stop);
    rlhf__boundary_finish(&t->boundary);
    rlhf__learner_finish(&t->learner);
    rlhf__optim_destroy(t->optim);
    rlhf__optim_destroy(t->critic_optim);
    rlhf__iteration_finish(&t->iteration);
    for (size_t i = 0; i < t->cast.n_rewards; i++)
        rlhf__instance_destroy(t->cast.rewards[i]);
    free(t->cast.rewards);
    rlhf__instance_destroy(t->cast.algo);
    rlhf__rollout_source_destroy(t->rollout);
    rlhf__response_rules_destroy(t->cast.rules);
    rlhf__text_source_finish(&t->source);
    rlhf__reward_training_destroy(t->reward_training);
    rlhf__preference_source_finish(&t->preferences);
    rlhf__dataset_close(t->held_out);
    rlhf__preferences_close(t->held_out_pairs);
    rlhf__model_close(t->cast.reference);
    rlhf__model_close(t->cast.critic);
    rlhf__model_close(t->cast.policy);
    rlhf__session_finish(&t->session);
    free(t);
}

double rlhf__run_lr_factor(const struct rlhf__run *t) {
    return rlhf__schedule_factor(&t->config->optim, t->count.phase, t->count.horizon);
}
