// effect_rules.c: rlhf__effect_rules of setup.h. Lists the settings that have an effect only in one
// kind of run, or only together with another setting. Settings that are not listed always have an
// effect. A setting that switches a feature off is also allowed in a run that does not have the
// feature. (early_stop.kl, early_stop.reward and data.long_rows are checked where they are used.)
#include "setup/setup.h"

#include "config/effect.h"
#include "episode/playing.h"
#include "learn/learner.h"
#include "learn/plan.h"
#include "run/early_stop.h"

#include <rlhf/draft/iteration.h>

#include <string.h>

// The rules of a run, in the order in which they apply.
struct rules {
    struct rlhf__effect_rule rule[80];
    size_t n;
};

#define BY_ALGO(path, unused, why)                                                                 \
    { path, unused, algo, why, NULL }
#define BY_SETTING(path, unused, why)                                                              \
    { path, unused, NULL, why, NULL }

static void add(struct rules *rules, const struct rlhf__effect_rule *added, size_t n) {
    memcpy(rules->rule + rules->n, added, n * sizeof *added);
    rules->n += n;
}

#define RESPONDS "responds to prompts (--prompts FILE) and trains on no rows of a file"

#define STATES_TASKS "states its tasks itself, and the run has no prompts (--prompts FILE)"

// Rules that depend on the algorithm.
static void add_algo_rules(struct rules *rules, const struct rlhf__run *r) {
    const struct rlhf__config *c = r->config;
    const rlhf_plan *p = &r->cast.plan;
    const rlhf_iteration *outer = &r->cast.iteration;
    const char *algo = r->req->algo->file;
    const int chooses = r->req->algo->ops.algo.choose_prompts != NULL;
    const int rollout = p->source == RLHF_SOURCE_ROLLOUT;
    const int preferences = // rows are pairs, or responses with a label each
        p->source == RLHF_SOURCE_PREFERENCES || p->source == RLHF_SOURCE_COMPLETIONS;
    const int labeled = p->source == RLHF_SOURCE_LABELED, prompts = rollout || preferences;
    const int reward_model = preferences && (p->heads & RLHF_HEAD_SCORE);
    const int calibrates = reward_model || outer->reward_model;
    const int draws = rollout || reward_model; // responses are sampled
    const int compared = calibrates || rlhf__cast_wants_reference(&r->cast);
    const int unscored = c->n_reward == 0 && !c->judge.plugin && !c->environment.plugin;
    const int critic = (p->heads & RLHF_HEAD_VALUE) != 0, scores = labeled || reward_model;
    const char *environment = r->req->environment ? r->req->environment->file : NULL;
    const int alone = rollout && rlhf__playing_alone(r->req->environment, &c->prompts);
    const struct rlhf__effect_rule added[] = {
        BY_ALGO("data.path", rollout, RESPONDS),
        BY_ALGO("data.limit", rollout, RESPONDS),
        BY_ALGO("data.skip", rollout, RESPONDS),
        BY_ALGO("data.max_tokens", rollout, RESPONDS),
        BY_ALGO("data.batch_tokens", rollout, RESPONDS),
        BY_ALGO("data.epochs", rollout, RESPONDS),
        BY_ALGO("data.shuffle", rollout, RESPONDS),
        BY_ALGO("data.long_rows", rollout, RESPONDS),
        BY_ALGO("data.assistant_only", rollout, RESPONDS),
        BY_ALGO("data.assistant_only", preferences,
                "learns from responses, which are the assistant's"),
        BY_ALGO("data.assistant_only", labeled, "has no loss on tokens, only on labels"),
        BY_ALGO("batch.share_prompts", !prompts, "has no prompts"),
        {"prompts.", !prompts, algo, "learns from rows of a file (--data FILE)",
         labeled ? "prompts.template prompts.template_vars prompts.date"
                 : "prompts.prepend_bos prompts.template prompts.template_vars prompts.date"},
        {"prompts.", !rollout && preferences, algo, "learns from rows of a file (--data FILE)",
         "prompts.prepend_bos prompts.template prompts.template_vars prompts.date"},
        {"prompts.", alone && !c->data.eval_path[0], environment, STATES_TASKS,
         "prompts.prepend_bos prompts.template prompts.template_vars prompts.date"},
        {"prompts.limit", alone, environment, STATES_TASKS, NULL},
        {"data.bad_rows", alone && !c->data.eval_path[0], environment, STATES_TASKS, NULL},
        {"prompts.shuffle", alone, environment, STATES_TASKS, NULL},
        BY_ALGO("prompts.shuffle", rollout && chooses, "chooses the prompts of each phase"),
        BY_ALGO("sampling.", !draws, "draws no responses"),
        BY_ALGO("rollout.", !rollout, "draws no responses"),
        BY_SETTING("episodes.", !c->environment.plugin, "the run has no environment (--env)"),
        {"response.", !rollout, algo, "has no responses to score",
         draws ? "response.truncate" : NULL},
        BY_SETTING("response.", rollout && unscored, "the run has no rewards"),
        BY_SETTING("rewards.", rollout && unscored, "the run has no rewards"),
        BY_ALGO("rewards.", !rollout, "has no rewards"),
        {"value.", !critic, algo, "has no critic",
         c->value.kind == RLHF_VALUE_NONE ? "value.kind" : NULL},
        BY_ALGO("reference.path", !compared, "does not compare with a reference"),
        BY_ALGO("score.labels", !labeled, "trains no classifier"),
        BY_ALGO("score.pooling", !scores, "trains no classifier or reward model"),
        BY_ALGO("score.calibrate", !calibrates && c->score_head.calibrate > 0,
                "trains no reward model"),
        BY_ALGO("run.stop_on", !rollout, "draws no responses, by which a collapse is found"),
    };
    add(rules, added, sizeof added / sizeof *added);
}

// Rules that depend on another setting.
static void add_setting_rules(struct rules *rules, const struct rlhf__config *c, int rollout,
                              const struct rlhf__log *log) {
    const int reference = strcmp(c->compute.backend, "reference") == 0;
    const int cpu = reference || strcmp(c->compute.backend, "cpu") == 0;
    const int adapter = c->policy.adapter_rank != 0 || c->policy.adapter_path[0];
    const int stops = rlhf__early_stop_looks_at(&c->early_stop, RLHF__EARLY_STOP_KL) ||
                      rlhf__early_stop_looks_at(&c->early_stop, RLHF__EARLY_STOP_REWARD);
    const struct rlhf__effect_rule added[] = {
        BY_SETTING("data.eval_limit", !c->data.eval_path[0], "data.eval_path is not given"),
        BY_SETTING("data.eval_every", !c->data.eval_path[0], "data.eval_path is not given"),
        BY_SETTING("data.epochs", c->run.phases > 0, "run.phases says when the run ends"),
        BY_SETTING("batch.size", !rollout && c->data.batch_tokens > 0,
                   "data.batch_tokens says how many rows a phase has"),
        BY_SETTING("prompts.field", c->prompts.text[0] != '\0', "prompts.text is the one prompt"),
        BY_SETTING("prompts.limit", c->prompts.text[0] != '\0', "prompts.text is the one prompt"),
        BY_SETTING("data.bad_rows", c->prompts.text[0] != '\0' && !c->data.eval_path[0],
                   "prompts.text is the one prompt"),
        BY_SETTING("response.period_", c->response.truncate != RLHF__TRUNCATE_PERIOD,
                   "response.truncate is not period"),
        BY_SETTING("response.non_stop_penalty", c->response.non_stop == RLHF__NON_STOP_NONE,
                   "response.non_stop is none; set response.non_stop=subtract or replace"),
        BY_SETTING("rewards.retries", c->mixing.on_failure != RLHF__FAILURE_RETRY,
                   "rewards.on_failure is not retry"),
        BY_SETTING("value.path", c->value.critic == RLHF__CRITIC_SHARED, "value.critic is shared"),
        BY_SETTING("rollout.threads", c->rollout.ahead == 0, "rollout.ahead is 0"),
        BY_SETTING("rollout.threads", c->parallel.actors > 0,
                   "the actors (parallel.actors) sample with all their threads"),
        BY_SETTING("optim.muon_", c->optim.kind != RLHF__OPTIM_MUON, "optim.kind is adamw"),
        BY_SETTING("optim.final_scale", c->optim.schedule == RLHF__SCHEDULE_CONSTANT,
                   "optim.schedule is constant"),
        BY_SETTING("optim.warmup_from", c->optim.warmup == 0, "optim.warmup is 0"),
        BY_SETTING("optim.schedule_phases", c->optim.schedule == RLHF__SCHEDULE_CONSTANT,
                   "optim.schedule is constant"),
        BY_SETTING("early_stop.window", !stops,
                   "neither early_stop.kl nor early_stop.reward is set"),
        BY_SETTING("early_stop.patience", !stops,
                   "neither early_stop.kl nor early_stop.reward is set"),
        BY_SETTING("checkpoint.best", c->checkpoint.every == 0,
                   "checkpoint.every is 0, so the last checkpoint is always the best"),
        BY_SETTING("checkpoint.best_mode", !c->checkpoint.best[0], "checkpoint.best is not given"),
        BY_SETTING("log.samples", c->log.samples > 0 && c->log.samples_every == 0,
                   "log.samples_every is 0"),
        BY_SETTING("log.samples_every_s", c->log.samples_every == 0, "log.samples_every is 0"),
        BY_SETTING("log.progress",
                   log->json && (c->log.progress == RLHF__PROGRESS_BAR ||
                                 c->log.progress == RLHF__PROGRESS_FULL),
                   "log.format is json"),
        BY_SETTING("compute.workspace_mib", reference, "compute.backend is reference"),
        BY_SETTING("compute.gpu", cpu, "no GPU is used"),
        BY_SETTING("policy.adapter.alpha", !adapter, "policy.adapter.rank is 0"),
        BY_SETTING("policy.adapter.targets", !adapter, "policy.adapter.rank is 0"),
        BY_SETTING("policy.adapter.rank", c->policy.adapter_path[0] != '\0',
                   "policy.adapter.path has its own"),
        BY_SETTING("policy.adapter.alpha", c->policy.adapter_path[0] != '\0',
                   "policy.adapter.path has its own"),
        BY_SETTING("policy.adapter.targets", c->policy.adapter_path[0] != '\0',
                   "policy.adapter.path has its own"),
    };
    add(rules, added, sizeof added / sizeof *added);
}

rlhf_status rlhf__effect_rules(const struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__log *log = r->report.log;
    struct rules rules = {.n = 0};
    add_algo_rules(&rules, r);
    add_setting_rules(&rules, r->config, r->cast.plan.source == RLHF_SOURCE_ROLLOUT, log);
    return rlhf__effect_check(r->config, rules.rule, rules.n, log, err);
}
