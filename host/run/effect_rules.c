// effect_rules.c: see effect_rules.h. Settings that only one kind of run, or another setting, makes
// use of; what is not here always has an effect, and to switch off what is not there is no fault.
// (early_stop.kl, early_stop.reward and data.long_rows are checked where they are used.)
#include "run/effect_rules.h"

#include "config/effect.h"
#include "run/early_stop.h"
#include "run/plan.h"

#include <rlhf/draft/iteration.h>

#include <string.h>

// What of a run the rules go by.
struct kind {
    int rollout, preferences, reward_model, labelled;
    int draws;      // responses: a rollout's, or those a reward model is fitted on
    int compared;   // with a reference
    int value;      // there is a critic
    int calibrates; // a reward model's gain and bias are fitted
};

static struct kind kind_of(const rlhf_plan *p) {
    struct kind k = {.rollout = p->source == RLHF_SOURCE_ROLLOUT,
                     .preferences = p->source == RLHF_SOURCE_PREFERENCES,
                     .labelled = p->source == RLHF_SOURCE_LABELLED};
    k.reward_model = k.preferences && (p->heads & RLHF_HEAD_SCORE);
    k.calibrates = k.reward_model || (p->flags & RLHF_PLAN_REWARD_MODEL);
    k.draws = k.rollout || k.reward_model;
    k.compared = k.calibrates || rlhf__plan_wants_reference(p);
    k.value = (p->heads & RLHF_HEAD_VALUE) != 0;
    return k;
}

rlhf_status rlhf__effect_rules(const struct rlhf__config *c, const char *algo,
                               const rlhf_plan *plan, struct rlhf__log *log,
                               struct rlhf__error *err) {
    const struct kind k = kind_of(plan);
    const int stops = rlhf__early_stop_looks_at(&c->early_stop, RLHF__EARLY_STOP_KL) ||
                      rlhf__early_stop_looks_at(&c->early_stop, RLHF__EARLY_STOP_REWARD);
    const char *no_limit = "neither early_stop.kl nor early_stop.reward is set";
    const int constant = c->optim.schedule == RLHF__SCHEDULE_CONSTANT;
    const char *bos = k.preferences ? "prompts.prepend_bos" : NULL;
    const char *cut = k.draws ? "response.truncate" : NULL;
    const char *none = c->value.kind == RLHF_VALUE_NONE ? "value.kind" : NULL;
    const struct rlhf__effect_rule rules[] = {
        {"data.", k.rollout, 0, algo, "responds to prompts (--prompts FILE) and reads no rows",
         "data.max_mib"},
        {"data.eval_limit", !c->data.eval_path[0], 0, NULL, "data.eval_path is not given", NULL},
        {"data.eval_every", !c->data.eval_path[0], 0, NULL, "data.eval_path is not given", NULL},
        {"data.epochs", c->run.phases > 0, 0, NULL, "run.phases says when the run ends", NULL},
        {"batch.size", !k.rollout && c->data.batch_tokens > 0, 0, NULL,
         "data.batch_tokens says how many rows a phase has", NULL},
        {"batch.share_prompts", !k.rollout && !k.preferences, 0, algo, "has no prompts", NULL},
        {"prompts.", !k.rollout, 0, algo, "learns from rows of a file (--data FILE)", bos},
        {"prompts.field", c->prompts.text[0], 0, NULL, "prompts.text is the one prompt", NULL},
        {"prompts.limit", c->prompts.text[0], 0, NULL, "prompts.text is the one prompt", NULL},
        {"sampling.", !k.draws, 0, algo, "draws no responses", NULL},
        {"response.", !k.rollout, 0, algo, "has no responses to pay", cut},
        {"response.period_", c->response.truncate != RLHF__TRUNCATE_PERIOD, 0, NULL,
         "response.truncate is not period", NULL},
        {"response.non_stop_penalty", c->response.non_stop == RLHF__NON_STOP_NONE, 0, NULL,
         "response.non_stop is none", NULL},
        {"rewards.", !k.rollout, 0, algo, "has no rewards", NULL},
        {"value.", !k.value, 0, algo, "has no critic", none},
        {"value.path", c->value.critic == RLHF__CRITIC_SHARED, 0, NULL, "value.critic is shared",
         NULL},
        {"reference.path", !k.compared, 0, algo, "does not compare with a reference", NULL},
        {"score.labels", !k.labelled, 0, algo, "trains no classifier", NULL},
        {"score.pooling", !k.labelled && !k.reward_model, 0, algo,
         "trains no classifier or reward model", NULL},
        {"score.calibrate", !k.calibrates && c->score_head.calibrate > 0, 0, algo,
         "trains no reward model", NULL},
        {"optim.muon_", c->optim.kind != RLHF__OPTIM_MUON, 0, NULL, "optim.kind is adamw", NULL},
        {"optim.final_scale", constant, 0, NULL, "optim.schedule is constant", NULL},
        {"optim.warmup_from", c->optim.warmup == 0, 0, NULL, "optim.warmup is 0", NULL},
        {"optim.schedule_phases", constant, 0, NULL, "optim.schedule is constant", NULL},
        {"early_stop.window", !stops, 0, NULL, no_limit, NULL},
        {"early_stop.patience", !stops, 0, NULL, no_limit, NULL},
        {"checkpoint.best", c->checkpoint.every == 0, 0, NULL,
         "checkpoint.every is 0, so the last checkpoint is always the best", NULL},
        {"checkpoint.best_mode", !c->checkpoint.best[0], 0, NULL, "checkpoint.best is not given",
         NULL},
        {"log.samples", !k.rollout && c->log.samples > 0, 0, algo, "draws no responses", NULL},
        {"log.samples_every", !k.rollout && c->log.samples_every > 0, 0, algo, "draws no responses",
         NULL},
        {"log.samples", c->log.samples_every == 0 && c->log.samples > 0, 0, NULL,
         "log.samples_every is 0", NULL},
        {"log.progress", log->json && c->log.progress == RLHF__PROGRESS_BAR, 0, NULL,
         "log.format is json", NULL},
        {"compute.workspace_mib", strcmp(c->compute.backend, "reference") == 0, 0, NULL,
         "compute.backend is reference", NULL},
    };
    return rlhf__effect_check(c, rules, sizeof rules / sizeof *rules, log, err);
}
