// effect_rules.c: see effect_rules.h. Lists the settings that have an effect only in one kind of
// run, or with another setting. A setting that is not listed always has an effect; switching off a
// feature that the run does not have is no error. (early_stop.kl, early_stop.reward and
// data.long_rows are checked where they are used.)
#include "run/effect_rules.h"

#include "config/effect.h"
#include "learn/learner.h"
#include "learn/plan.h"
#include "run/early_stop.h"

#include <rlhf/draft/iteration.h>

#include <stdint.h>
#include <string.h>

// Facts about a run for the rules: from its plan, then from its settings.
enum fact {
    ROLLOUT = 1 << 0, // rows are responses
    FILE_ROWS = 1 << 1,
    PREFERENCES = 1 << 2,
    NO_PROMPTS = 1 << 3,
    DRAWS = 1 << 4, // responses are sampled: a rollout's, or those that a reward model is fitted on
    NO_DRAWS = 1 << 5,
    NO_REFERENCE = 1 << 6,
    NO_CRITIC = 1 << 7,
    NO_CLASSIFIER = 1 << 8,
    NO_SCORES = 1 << 9,       // trains neither a classifier nor a reward model
    NO_CALIBRATION = 1 << 10, // for a reward model's gain and bias
    NO_HELD_OUT = 1 << 11,
    PHASES_GIVEN = 1 << 12,
    BY_TOKENS = 1 << 13,
    ONE_PROMPT = 1 << 14,
    NO_PERIOD = 1 << 15,
    NO_STOP_RULE = 1 << 16,
    NO_VALUE_KIND = 1 << 17,
    SHARED_CRITIC = 1 << 18,
    CALIBRATE_SET = 1 << 19,
    ADAMW = 1 << 20,
    CONSTANT = 1 << 21,
    NO_WARMUP = 1 << 22,
    NO_STOP_LIMIT = 1 << 23,
    NO_CHECKPOINTS = 1 << 24,
    NO_BEST = 1 << 25,
    SAMPLES_SET = 1 << 26,
    SAMPLES_EVERY_SET = 1 << 27,
    SAMPLES_NEVER = 1 << 28,
    BAR_IN_JSON = 1 << 29,
    REFERENCE_BACKEND = 1 << 30
};
#define NO_GPU        (UINT64_C(1) << 31)
#define NO_ADAPTER    (UINT64_C(1) << 32) // to initialise at random
#define ADAPTER_GIVEN (UINT64_C(1) << 33)
#define NO_RETRY      (UINT64_C(1) << 34)
#define LABELLED      (UINT64_C(1) << 35) // rows have labels

static int is_backend(const struct rlhf__config *c, const char *name) {
    return strcmp(c->compute.backend, name) == 0;
}

static uint64_t if_true(int is, uint64_t fact) { return is ? fact : 0; }

static uint64_t facts_of_plan(const rlhf_plan *p, const rlhf_iteration *outer) {
    const int rollout = p->source == RLHF_SOURCE_ROLLOUT;
    const int preferences = // compared, or labelled one by one
        p->source == RLHF_SOURCE_PREFERENCES || p->source == RLHF_SOURCE_COMPLETIONS;
    const int labelled = p->source == RLHF_SOURCE_LABELLED;
    const int reward_model = preferences && (p->heads & RLHF_HEAD_SCORE);
    const int calibrates = reward_model || outer->reward_model;
    const int draws = rollout || reward_model;
    const int compared = calibrates || rlhf__plan_wants_reference(p);
    return if_true(preferences, PREFERENCES) | if_true(!rollout && !preferences, NO_PROMPTS) |
           if_true(!compared, NO_REFERENCE) | if_true(!(p->heads & RLHF_HEAD_VALUE), NO_CRITIC) |
           if_true(labelled, LABELLED) | if_true(!labelled, NO_CLASSIFIER) |
           if_true(!labelled && !reward_model, NO_SCORES) | if_true(!calibrates, NO_CALIBRATION) |
           (rollout ? ROLLOUT : FILE_ROWS) | (draws ? DRAWS : NO_DRAWS);
}

static uint64_t facts_of_config(const struct rlhf__config *c, const struct rlhf__log *log) {
    const int stops = rlhf__early_stop_looks_at(&c->early_stop, RLHF__EARLY_STOP_KL) ||
                      rlhf__early_stop_looks_at(&c->early_stop, RLHF__EARLY_STOP_REWARD);
    const int bar = c->log.progress == RLHF__PROGRESS_BAR;
    return if_true(c->policy.adapter_rank == 0 && !c->policy.adapter_path[0], NO_ADAPTER) |
           if_true(c->policy.adapter_path[0] != '\0', ADAPTER_GIVEN) |
           if_true(!c->data.eval_path[0], NO_HELD_OUT) | if_true(c->run.phases > 0, PHASES_GIVEN) |
           if_true(c->data.batch_tokens > 0, BY_TOKENS) |
           if_true(c->prompts.text[0] != '\0', ONE_PROMPT) |
           if_true(c->response.truncate != RLHF__TRUNCATE_PERIOD, NO_PERIOD) |
           if_true(c->response.non_stop == RLHF__NON_STOP_NONE, NO_STOP_RULE) |
           if_true(c->value.kind == RLHF_VALUE_NONE, NO_VALUE_KIND) |
           if_true(c->value.critic == RLHF__CRITIC_SHARED, SHARED_CRITIC) |
           if_true(c->score_head.calibrate > 0, CALIBRATE_SET) |
           if_true(c->optim.kind != RLHF__OPTIM_MUON, ADAMW) |
           if_true(c->optim.schedule == RLHF__SCHEDULE_CONSTANT, CONSTANT) |
           if_true(c->optim.warmup == 0, NO_WARMUP) | if_true(!stops, NO_STOP_LIMIT) |
           if_true(c->checkpoint.every == 0, NO_CHECKPOINTS) |
           if_true(!c->checkpoint.best[0], NO_BEST) | if_true(c->log.samples > 0, SAMPLES_SET) |
           if_true(c->log.samples_every > 0, SAMPLES_EVERY_SET) |
           if_true(c->log.samples_every == 0, SAMPLES_NEVER) |
           if_true(log->json && bar, BAR_IN_JSON) |
           if_true(is_backend(c, "reference"), REFERENCE_BACKEND) |
           if_true(c->mixing.on_failure != RLHF__FAILURE_RETRY, NO_RETRY) |
           if_true(is_backend(c, "cpu") || is_backend(c, "reference"), NO_GPU);
}

#define RESPONDS "responds to prompts (--prompts FILE) and trains on no rows of a file"

// `path` has no effect if all facts of `when` hold, except `except` if all facts of `unless` hold.
static const struct rule {
    const char *path;
    uint64_t when;
    int64_t of_algo; // 1: the reason is the algorithm, 0: another setting
    const char *why;
    const char *except;
    uint64_t unless, reserved;
} table[] = {
    {"data.path", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.limit", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.skip", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.max_tokens", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.batch_tokens", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.epochs", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.shuffle", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.long_rows", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.eval_limit", NO_HELD_OUT, 0, "data.eval_path is not given", NULL, 0, 0},
    {"data.eval_every", NO_HELD_OUT, 0, "data.eval_path is not given", NULL, 0, 0},
    {"data.assistant_only", ROLLOUT, 1, RESPONDS, NULL, 0, 0},
    {"data.assistant_only", PREFERENCES, 1, "learns from responses, which are the assistant's",
     NULL, 0, 0},
    {"data.assistant_only", LABELLED, 1, "has no loss on tokens, only on labels", NULL, 0, 0},
    {"data.epochs", PHASES_GIVEN, 0, "run.phases says when the run ends", NULL, 0, 0},
    {"batch.size", FILE_ROWS | BY_TOKENS, 0, "data.batch_tokens says how many rows a phase has",
     NULL, 0, 0},
    {"batch.share_prompts", NO_PROMPTS, 1, "has no prompts", NULL, 0, 0},
    {"prompts.", FILE_ROWS | NO_PROMPTS, 1, "learns from rows of a file (--data FILE)",
     "prompts.template", 0, 0},
    {"prompts.", FILE_ROWS | PREFERENCES, 1, "learns from rows of a file (--data FILE)",
     "prompts.prepend_bos prompts.template", 0, 0},
    {"prompts.field", ONE_PROMPT, 0, "prompts.text is the one prompt", NULL, 0, 0},
    {"prompts.limit", ONE_PROMPT, 0, "prompts.text is the one prompt", NULL, 0, 0},
    {"sampling.", NO_DRAWS, 1, "draws no responses", NULL, 0, 0},
    {"response.", FILE_ROWS, 1, "has no responses to score", "response.truncate", DRAWS, 0},
    {"response.period_", NO_PERIOD, 0, "response.truncate is not period", NULL, 0, 0},
    {"response.non_stop_penalty", NO_STOP_RULE, 0, "response.non_stop is none", NULL, 0, 0},
    {"rewards.", FILE_ROWS, 1, "has no rewards", NULL, 0, 0},
    {"rewards.retries", NO_RETRY, 0, "rewards.on_failure is not retry", NULL, 0, 0},
    {"value.", NO_CRITIC, 1, "has no critic", "value.kind", NO_VALUE_KIND, 0},
    {"value.path", SHARED_CRITIC, 0, "value.critic is shared", NULL, 0, 0},
    {"reference.path", NO_REFERENCE, 1, "does not compare with a reference", NULL, 0, 0},
    {"score.labels", NO_CLASSIFIER, 1, "trains no classifier", NULL, 0, 0},
    {"score.pooling", NO_SCORES, 1, "trains no classifier or reward model", NULL, 0, 0},
    {"score.calibrate", NO_CALIBRATION | CALIBRATE_SET, 1, "trains no reward model", NULL, 0, 0},
    {"optim.muon_", ADAMW, 0, "optim.kind is adamw", NULL, 0, 0},
    {"optim.final_scale", CONSTANT, 0, "optim.schedule is constant", NULL, 0, 0},
    {"optim.warmup_from", NO_WARMUP, 0, "optim.warmup is 0", NULL, 0, 0},
    {"optim.schedule_phases", CONSTANT, 0, "optim.schedule is constant", NULL, 0, 0},
    {"run.stop_on", FILE_ROWS, 1, "draws no responses, by which a collapse is found", NULL, 0, 0},
    {"early_stop.window", NO_STOP_LIMIT, 0, "neither early_stop.kl nor early_stop.reward is set",
     NULL, 0, 0},
    {"early_stop.patience", NO_STOP_LIMIT, 0, "neither early_stop.kl nor early_stop.reward is set",
     NULL, 0, 0},
    {"checkpoint.best", NO_CHECKPOINTS, 0,
     "checkpoint.every is 0, so the last checkpoint is always the best", NULL, 0, 0},
    {"checkpoint.best_mode", NO_BEST, 0, "checkpoint.best is not given", NULL, 0, 0},
    {"log.samples", FILE_ROWS | SAMPLES_SET, 1, "draws no responses", NULL, 0, 0},
    {"log.samples_every", FILE_ROWS | SAMPLES_EVERY_SET, 1, "draws no responses", NULL, 0, 0},
    {"log.samples", SAMPLES_SET | SAMPLES_NEVER, 0, "log.samples_every is 0", NULL, 0, 0},
    {"log.progress", BAR_IN_JSON, 0, "log.format is json", NULL, 0, 0},
    {"compute.workspace_mib", REFERENCE_BACKEND, 0, "compute.backend is reference", NULL, 0, 0},
    {"compute.gpu", NO_GPU, 0, "no GPU is used", NULL, 0, 0},
    {"policy.adapter.alpha", NO_ADAPTER, 0, "policy.adapter.rank is 0", NULL, 0, 0},
    {"policy.adapter.targets", NO_ADAPTER, 0, "policy.adapter.rank is 0", NULL, 0, 0},
    {"policy.adapter.rank", ADAPTER_GIVEN, 0, "policy.adapter.path has its own", NULL, 0, 0},
    {"policy.adapter.alpha", ADAPTER_GIVEN, 0, "policy.adapter.path has its own", NULL, 0, 0},
    {"policy.adapter.targets", ADAPTER_GIVEN, 0, "policy.adapter.path has its own", NULL, 0, 0},
};

#define N_RULES (sizeof table / sizeof *table)

static int hold(uint64_t facts, uint64_t all) { return (facts & all) == all; }

rlhf_status rlhf__effect_rules(const struct rlhf__config *c, const char *algo,
                               const rlhf_plan *plan, const rlhf_iteration *outer,
                               struct rlhf__log *log, struct rlhf__error *err) {
    const uint64_t facts = facts_of_plan(plan, outer) | facts_of_config(c, log);
    struct rlhf__effect_rule rules[N_RULES];
    for (size_t i = 0; i < N_RULES; i++) {
        const struct rule *r = &table[i];
        rules[i] = (struct rlhf__effect_rule){.path = r->path,
                                              .idle = hold(facts, r->when),
                                              .who = r->of_algo ? algo : NULL,
                                              .why = r->why,
                                              .except = hold(facts, r->unless) ? r->except : NULL};
    }
    return rlhf__effect_check(c, rules, N_RULES, log, err);
}
