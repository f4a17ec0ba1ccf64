// setup.c: see setup.h. The steps are in the order in which a run is set up; setup.h names the
// files of the larger steps.
#include "setup/setup.h"

#include "base/file.h"
#include "config/layer.h"
#include "keep/chain_log.h"
#include "keep/inputs.h"
#include "keep/manifest.h"
#include "keep/run_dir.h"
#include "learn/shards.h"
#include "model/free_memory.h"
#include "plugin/search.h"
#include "report/phase_report.h"
#include "run/saving.h"
#include "sample/actors.h"
#include "sample/rewards.h"
#include "team/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the device ----

static rlhf_status open_session_with(struct rlhf__run *r, int64_t threads,
                                     struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__env *env = r->req->env;
    struct rlhf__run_config run = c->run;
    struct rlhf__compute_config compute = c->compute;
    run.threads = threads;
    compute.gpu = rlhf__setup_gpu(r);
    RLHF_TRY(rlhf__session_init(&r->session, env->dirs, r->report.log, env->cancelled,
                                r->req->plugins, &compute, &run, err));
    r->session.models.dequantize = c->policy.dequantize;
    return RLHF_OK;
}

// With rollout.ahead, leave some of a CPU's threads for the sampler.
static rlhf_status open_session(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    RLHF_TRY(open_session_with(r, rlhf__setup_threads(r), err));
    const rlhf_compute *table = r->session.compute->table;
    const int64_t all = table->threads;
    if (c->rollout.ahead == 0 || r->req->recorded || r->req->split ||
        table->device != RLHF_DEVICE_CPU)
        return RLHF_OK;
    RLHF_TRY(rlhf__setup_split_threads(r, all, err));
    if (all < 2) return RLHF_OK;
    rlhf__session_finish(&r->session);
    return open_session_with(r, all - r->ahead_threads, err);
}

// Log which backend computes. If no GPU is used, although the user may expect one, also log why.
static void say_compute(struct rlhf__run *r, const char *passed_over, int32_t level) {
    const rlhf_compute *table = r->session.compute->table;
    const int says = passed_over[0] && level >= r->report.log->level;
    rlhf__logf(r->report.log, RLHF_LOG_INFO, "compute: %s, %s, products in %s%s%s", table->name,
               table->detail, r->session.models.dtype == RLHF_BF16 ? "bf16" : "f32",
               says ? "; no GPU: " : "", says ? passed_over : "");
    rlhf__run_say_compute(r);
    rlhf__setup_say_gpus(r);
    if (!(table->flags & RLHF_COMPUTE_ROW_EXACT))
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "the compute backend %s does not promise exact rows: a row's numbers depend on "
                   "the other rows, so log-probs of sampling and of training differ "
                   "(sampling/logp_difference), and a resumed run or one with other threads or "
                   "batches may end with different bytes; manifest.json records this, and "
                   "compute.backend=cpu keeps every promise",
                   table->name);
}

// Replace "auto" by the backend that was found, so that a resumed run uses the same backend, unless
// the user names another one.
static rlhf_status open_compute(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__compute_config *c = &r->req->config->compute;
    const int is_auto = strcmp(c->backend, "auto") == 0;
    char dir[4200];
    struct rlhf__error full;
    rlhf_status st = open_session(r, err);
    if (st != RLHF_OK && r->req->resume && strcmp(c->backend, "cuda") == 0 &&
        !rlhf__layer_typed_by(r->config, "compute", "backend"))
        return rlhf__error_context(err, "the run was made on a GPU (--set compute.backend=cpu goes "
                                        "on without one)");
    if (st != RLHF_OK) return st;
    const struct rlhf__compute *found = r->session.compute;
    if (!is_auto) {
        say_compute(r, "", 0);
        return RLHF_OK;
    }
    c->backend = found->table->device == RLHF_DEVICE_CPU ? "cpu" : "cuda";
    rlhf__setup_policy_dir(r, dir);
    const struct rlhf__model_spec spec = {.dir = dir,
                                          .adapter = rlhf__setup_adapter(r),
                                          .role = "policy",
                                          .trainable = 1,
                                          .moments = rlhf__setup_moments(r->config)};
    if (rlhf__free_memory_check_spec(&r->session.models, &spec, &full) == RLHF_OK) {
        say_compute(r, found->passed_over, found->passed_level);
        return RLHF_OK;
    }
    rlhf__session_finish(&r->session);
    c->backend = "cpu";
    RLHF_TRY(open_session(r, err));
    say_compute(r, full.text, RLHF_LOG_INFO);
    return RLHF_OK;
}

// ---- the plan ----

// Returns the distribution under which log-probs are computed. It does not include top-k and top-p:
// the rows record which tokens these two removed during sampling (prompt_feed.c).
static rlhf_dist logp_dist(const struct rlhf__sampling_config *s, const rlhf_plan *plan) {
    rlhf_dist d = RLHF_DIST_WHOLE;
    if (plan->source != RLHF_SOURCE_ROLLOUT) return d;
    if (!(plan->flags & RLHF_PLAN_UNIT_TEMPERATURE)) d.inv_temperature = 1 / s->temperature;
    return d;
}

static int is_typed(const struct rlhf__config *c, const char *section, const char *key) {
    return rlhf__layer_typed_by(c, section, key) != NULL;
}

// Reject early_stop settings that cannot end the run in the remaining phases. If these settings
// come from a preset or a file, and the command line has only reduced run.phases, as for a trial
// run, warn instead. A run that is resumed with unchanged settings simply continues.
static rlhf_status check_early_stop(const struct rlhf__run *r, const struct rlhf__early_stop *s,
                                    int64_t left, struct rlhf__error *err) {
    static const char *const keys[] = {"kl", "reward", "patience", "window"};
    const struct rlhf__config *c = r->config;
    const int phases = is_typed(c, "run", "phases");
    int typed = 0;
    struct rlhf__error why;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        typed |= is_typed(c, "early_stop", keys[i]);
    if (typed || (!phases && !r->req->resume)) return rlhf__early_stop_check_left(s, left, err);
    if (phases && rlhf__early_stop_check_left(s, left, &why) != RLHF_OK)
        rlhf__logf(r->report.log, RLHF_LOG_WARN, "%s", why.text);
    return RLHF_OK;
}

// Note which log-probs the rewards and the judge need.
static void ask_rewards(struct rlhf__run *r) {
    struct rlhf__cast *cast = &r->cast;
    uint32_t flags = r->req->judge ? r->req->judge->ops.reward.flags : 0;
    for (size_t i = 0; i < r->config->n_reward; i++)
        flags |= r->req->rewards[i]->ops.reward.flags;
    if (cast->plan.source != RLHF_SOURCE_ROLLOUT) return;
    cast->rewards_refer = (flags & RLHF_REWARD_LOGP_REF) != 0;
    cast->rewards_sampled = (flags & RLHF_REWARD_LOGP_SAMPLED) != 0;
}

static int pays(const struct rlhf__plugin *environment) {
    return environment && (environment->ops.environment.flags & RLHF_ENVIRONMENT_PAYS) != 0;
}

// Make the plan, which determines the heads and the kind of rows of the run.
static rlhf_status make_plan(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    struct rlhf__cast *cast = &r->cast;
    rlhf_plan *plan = &cast->plan;
    struct rlhf__origin from = {"the config", "algo", NULL, 0, 0};
    rlhf_status st = rlhf__instance_open(r->req->algo, &r->session.services, "", c->algo.options,
                                         &from, &cast->algo, err);
    if (st == RLHF_OK)
        st = rlhf__setup_ask_plan(r, c->run.phases ? c->run.phases : RLHF__DEFAULT_PHASES, 0, plan,
                                  err);
    if (st == RLHF_OK) st = rlhf__plan_iteration(cast->algo, plan, &cast->iteration, err);
    if (st == RLHF_OK) st = rlhf__setup_names(r, err);
    if (st != RLHF_OK) return st;
    ask_rewards(r);
    cast->logp_dist = logp_dist(&c->sampling, plan);
    if ((plan->heads & RLHF_HEAD_VALUE) && c->value.kind == RLHF_VALUE_NONE)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s needs a value head, but value.kind is none; linear or mlp is allowed",
                          cast->algo->plugin->file);
    st = rlhf__early_stop_check(
        &c->early_stop, r->req->algo->file, plan->source == RLHF_SOURCE_ROLLOUT,
        c->n_reward > 0 || pays(r->req->environment), rlhf__plan_wants_reference(plan), err);
    const struct rlhf__early_stop fresh = {.config = &c->early_stop};
    if (st == RLHF_OK && !r->req->resume)
        st = check_early_stop(r, &fresh, c->run.phases ? c->run.phases : RLHF__DEFAULT_PHASES, err);
    if (st == RLHF_OK) st = rlhf__setup_check_batch(r, err);
    if (st == RLHF_OK) st = rlhf__setup_check_ahead(r, err);
    return st == RLHF_OK ? rlhf__effect_rules(r, err) : st;
}

// ---- rows and models ----

// Returns 1 for a dry run that ends before models are loaded. A dry run of a resumed run loads the
// models, to check the checkpoint.
static int only_told(const struct rlhf__run *r) { return r->req->dry_run && !r->req->resume; }

static void set_phases(struct rlhf__run *r) {
    int64_t planned = r->config->optim.schedule_phases;
    struct rlhf__count *c = &r->count;
    c->phases = r->config->run.phases > 0 ? r->config->run.phases : r->feed->phases;
    c->horizon = planned > c->phases ? planned : c->phases;
}

static rlhf_status open_rows(struct rlhf__run *r, struct rlhf__error *err) {
    if (rlhf__run_acts(r)) return rlhf__setup_actor_rows(r, err);
    RLHF_TRY(rlhf__setup_rows(r, err));
    set_phases(r);
    rlhf__say_tuned_defaults(r);
    rlhf__say_small_steps(r);
    rlhf__say_recomputable(r);
    return RLHF_OK;
}

// Open the models on a memory plan first, so that a run that does not fit is rejected before
// anything is loaded.
static rlhf_status open_models(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__model_env *env = &r->session.models;
    if (env->unchecked && !r->req->dry_run) return open_rows(r, err);
    RLHF_TRY(rlhf__memory_plan_open(env->compute, &r->memory_plan, err));
    env->memory_plan = r->memory_plan;
    RLHF_TRY(open_rows(r, err));
    rlhf__progress_note(r->report.progress, "counting memory");
    RLHF_TRY(rlhf__estimate_memory(r, r->req->need, err));
    env->memory_plan = NULL;
    return only_told(r) ? rlhf__setup_check(r, err) : rlhf__setup_load(r, err);
}

// Warn about a plugin that was found by name if it hides another file of the same name. The user
// may have meant the other file.
static void say_hidden(const struct rlhf__run *r) {
    const struct rlhf__plugin *const *all;
    const size_t n = rlhf__plugins_list(r->req->plugins, &all);
    char other[RLHF__PATH_CAP];
    for (size_t i = 0; i < n; i++)
        if (rlhf__plugin_hidden(r->req->env->dirs, all[i]->path, other))
            rlhf__logf(r->report.log, RLHF_LOG_WARN, "%s is %s, which hides %s", all[i]->file,
                       all[i]->path, other);
}

// ---- the learner, and where a resumed run continues ----

static rlhf_status open_learner(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__cast *cast = &r->cast;
    RLHF_TRY(rlhf__setup_optim(r, cast->policy, &r->optim, err));
    if (cast->critic) RLHF_TRY(rlhf__setup_optim(r, cast->critic, &r->critic_optim, err));
    r->learner = rlhf__setup_learner(r, r->optim, r->critic_optim);
    RLHF_TRY(rlhf__shards_open(&r->learner, &r->cast.share, err));
    return rlhf__early_stop_init(&r->early_stop, &r->config->early_stop, err);
}

// On resume, log which files outside the run directory are read. The user should see them, because
// config.json names them and someone else may have written config.json.
static void say_outside(const struct rlhf__run *r) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    char run[RLHF__PATH_CAP];
    rlhf__inputs_outside(r->inputs, rlhf__path_real(r->req->dir->path, run) ? run : "", &list);
    if (list.len)
        rlhf__logf(r->report.log, RLHF_LOG_INFO, "the run reads files outside its directory: %s",
                   rlhf__buf_text(&list));
    rlhf__buf_finish(&list);
}

static rlhf_status resume(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__run_request *q = r->req;
    const struct rlhf__manifest code = rlhf__run_manifest(r);
    if (!q->resume) return RLHF_OK;
    if (!q->allow_changed_plugins)
        RLHF_TRY(rlhf__manifest_check(&code, q->dir->root, q->resume, err));
    if (!q->allow_changed_inputs)
        RLHF_TRY(rlhf__manifest_check_inputs(&code, q->dir->root, q->resume, err));
    say_outside(r);
    rlhf__manifest_moved(&code, q->dir->root, r->report.log);
    rlhf__progress_note(r->report.progress, "loading the checkpoint");
    RLHF_TRY(rlhf__saving_load(r, err));
    return check_early_stop(r, &r->early_stop, r->count.phases - r->count.phase, err);
}

// ---- bad rows ----

static void say_bad_rows(const struct rlhf__run *r) {
    const struct rlhf__bad_rows *b = &r->bad_rows;
    struct rlhf__buf named = RLHF__BUF_INIT;
    if (b->n == 0) return;
    for (int64_t i = 0; i < b->n && i < RLHF__BAD_ROWS_NAMED; i++)
        rlhf__buf_printf(&named, "%s%s", i ? "; " : "", b->first[i]);
    rlhf__logf(r->report.log, RLHF_LOG_WARN, "data.bad_rows=skip: %lld row%s left out: %s%s",
               (long long)b->n, b->n == 1 ? " is" : "s are", rlhf__buf_text(&named),
               b->n > RLHF__BAD_ROWS_NAMED ? "; ..." : "");
    rlhf__buf_finish(&named);
}

// ---- all of it, in order ----

static rlhf_status set_up(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__env *env = r->req->env;
    const int32_t shows =
        rlhf__run_writes(r) ? r->config->log.progress : (int32_t)RLHF__PROGRESS_OFF;
    RLHF_TRY(rlhf__progress_open(shows, r->report.log, &r->report.progress, err));
    r->loading = (struct rlhf__loading){.max_mib = r->config->data.max_mib,
                                        .cancelled = env->cancelled,
                                        .watch = rlhf__progress_watch(r->report.progress)};
    if (r->config->data.bad_rows == RLHF__BAD_ROWS_SKIP) r->loading.bad = &r->bad_rows;
    r->feed_env = (struct rlhf__feed_env){
        .config = r->config,
        .cast = &r->cast,
        .dirs = env->dirs,
        .log = r->report.log,
        .progress = r->report.progress,
        .loading = &r->loading,
        .environment = r->req->environment,
        .answers = r->req->trusts & RLHF__TRUST_ANSWERS ? r->req->recorded : NULL};
    RLHF_TRY(rlhf__setup_checkpoints(r, err));
    RLHF_TRY(open_compute(r, err));
    RLHF_TRY(rlhf__text_services_open(&r->session.models, env->dirs, &r->served, err));
    if (rlhf__run_writes(r))
        RLHF_TRY(rlhf__sinks_open(r->config, r->req->sinks, &r->session.services, r->report.log,
                                  &r->report.sinks, err));
    RLHF_TRY(rlhf__iteration_init(&r->iteration, r->config, &r->cast, &r->report,
                                  &r->session.services, err));
    RLHF_TRY(rlhf__setup_shards(r, err));
    RLHF_TRY(make_plan(r, err));
    RLHF_TRY(open_models(r, err));
    r->cast.share.team = rlhf__run_learners(r); // from here on, the work is divided
    r->session.services.reduce = rlhf__team_reduce;
    r->session.services.reduce_ctx = r->cast.share.team;
    RLHF_TRY(rlhf__setup_reward_checkpoints(r, err));
    RLHF_TRY(rlhf__setup_inputs(r, err));
    say_bad_rows(r);
    say_hidden(r);
    if (only_told(r)) {
        rlhf__say_time(r);
        return rlhf__setup_disk(r, err);
    }
    RLHF_TRY(rlhf__setup_ready(r, err));
    if (rlhf__run_acts(r)) return rlhf__setup_same(r, err);
    RLHF_TRY(rlhf__setup_device(r, err));
    RLHF_TRY(open_learner(r, err));
    RLHF_TRY(resume(r, err));
    rlhf__say_time(r);
    RLHF_TRY(rlhf__setup_disk(r, err));
    RLHF_TRY(rlhf__setup_same(r, err));
    const int checks = r->feed->ops->check && !r->req->recorded; // the check samples responses
    return checks ? r->feed->ops->check(r->feed, err) : RLHF_OK;
}

rlhf_status rlhf__run_open(const struct rlhf__run_request *req, struct rlhf__run **out,
                           struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__run *r = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory");
    r->report.started = rlhf__seconds();
    r->req = req;
    r->config = req->config;
    r->report.log = req->env->log;
    r->report.silent = !rlhf__run_writes(r);
    rlhf_status st = rlhf__run_advise(r, set_up(r, err), err);
    if (st != RLHF_OK) {
        rlhf__run_close(r);
        return st;
    }
    *out = r;
    return RLHF_OK;
}
