// reward_round.c: see reward_round.h.
#include "run/reward_round.h"

#include "run/plan.h"
#include "run/rollout_source.h"
#include "run/run.h"
#include "sample/scoring.h"

#include <stdlib.h>
#include <string.h>

// ---- set-up ----

// What the loss reports at the end of its phase.
static void catch_metric(void *ctx, const char *name, double value) {
    struct rlhf__reward_round *r = ctx;
    if (strcmp(name, "objective/loss") == 0) r->caught_loss = value;
    if (strcmp(name, "reward_model/accuracy") == 0) r->caught_accuracy = value;
    if (strcmp(name, "reward_model/margin") == 0) r->caught_margin = value;
}

static rlhf_status open_loss(struct rlhf__reward_round *r, struct rlhf__error *err) {
    const struct rlhf__plugin *plugin = NULL;
    rlhf_status st =
        rlhf__plugin_open(r->t->req->plugins, "bradley_terry.so", RLHF_KIND_ALGO,
                          RLHF__NAME_LOOKED_UP, "training the reward model on", &plugin, err);
    if (st != RLHF_OK) return st;
    r->services = r->t->session.services;
    r->services.metric = catch_metric;
    r->services.metric_ctx = r;
    struct rlhf__origin from = {plugin->file, "", NULL, 0, 0, 0};
    st = rlhf__instance_create(plugin, &r->services, NULL, &from, &r->loss, err);
    if (st != RLHF_OK) return st;
    rlhf_run_info info = {.size = sizeof info, .n_labels = 1, .temperature = 1};
    rlhf_plan *plan = &r->learner.plan;
    st = rlhf__plan_ask(r->loss, &info, plan, err);
    if (st != RLHF_OK || (plan->source == RLHF_SOURCE_PREFERENCES &&
                          plan->heads == RLHF_HEAD_SCORE && !rlhf__plan_compares(plan)))
        return st;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s cannot train a reward model: it must plan preferences, the head 'score' "
                      "alone and no reference",
                      plugin->path);
}

static rlhf_status open_learner(struct rlhf__reward_round *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->t->config;
    const struct rlhf__model *m = r->rm->model;
    struct rlhf__optim_config own = c->optim;
    own.kind = RLHF__OPTIM_ADAMW;
    rlhf_status st =
        rlhf__optim_create(m->compute, m->params, m->n_params, &own, 0, &r->optim, err);
    r->learner.model = m;
    r->learner.reward_head = &r->rm->head;
    r->learner.algo = r->loss;
    r->learner.optim = r->optim;
    r->learner.dist = (rlhf_dist){1, 1, 0, 0};
    r->learner.microbatch_tokens = c->batch.microbatch_tokens;
    r->learner.written_out = !c->batch.share_prompts;
    r->learner.max_new_tokens = c->sampling.max_new_tokens;
    return st;
}

rlhf_status rlhf__reward_round_create(struct rlhf__run *t, struct rlhf__reward_model *rm,
                                      struct rlhf__reward_round **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__reward_round *r = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for the reward model's training");
    r->t = t;
    r->rm = rm;
    rlhf_status st = open_loss(r, err);
    if (st == RLHF_OK) st = open_learner(r, err);
    if (st != RLHF_OK) {
        rlhf__reward_round_destroy(r);
        return st;
    }
    *out = r;
    return RLHF_OK;
}

void rlhf__reward_round_destroy(struct rlhf__reward_round *r) {
    if (!r) return;
    rlhf__learner_finish(&r->learner);
    rlhf__optim_destroy(r->optim);
    rlhf__instance_destroy(r->loss);
    free(r);
}

// ---- a round ----

static rlhf_status check(const rlhf_reward_update *u, struct rlhf__error *err) {
    if (u->epochs < 1)
        return rlhf__fail(err, RLHF_E_INVALID, "the reward model's epochs are %d; at least 1",
                          u->epochs);
    if (u->batch_pairs < 1)
        return rlhf__fail(err, RLHF_E_INVALID, "the reward model's batch is %d pairs; at least 1",
                          u->batch_pairs);
    if (!(u->lr > 0 && u->lr <= 10))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the reward model's learning rate is %g; it must be above 0, at most 10",
                          u->lr);
    if (u->history_max < 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the replay history is limited to %lld pairs; 0 (all) or more",
                          (long long)u->history_max);
    return RLHF_OK;
}

// One optimiser step on the pairs pick[0..n).
static rlhf_status step(struct rlhf__reward_round *r, const struct rlhf__replay *replay,
                        const uint32_t *pick, uint32_t n, uint32_t k, double factor,
                        struct rlhf__error *err) {
    struct rlhf__episodes e = {0};
    int32_t stop; // the round decides
    rlhf_status st = rlhf__replay_rows(replay, pick, n, &e, err);
    if (st == RLHF_OK) st = rlhf__learner_minibatch(&r->learner, &e, 0, k, factor, &stop, err);
    rlhf__episodes_finish(&e);
    return st;
}

static rlhf_status train(struct rlhf__reward_round *r, const struct rlhf__replay *replay,
                         const rlhf_reward_update *u, const uint32_t *pick, uint32_t n,
                         rlhf_reward_update_report *out, struct rlhf__error *err) {
    uint32_t batch = (uint32_t)u->batch_pairs, steps = n / batch + (n % batch != 0);
    rlhf_status st = RLHF_OK;
    r->optim->config.lr = r->optim->head_lr = u->lr;
    r->services.phase = r->t->session.services.phase;
    for (uint32_t k = 0; st == RLHF_OK && k < steps; k++) {
        uint32_t from = k * batch, size = n - from < batch ? n - from : batch;
        st = step(r, replay, pick + from, size, k, 1 - (double)k / (double)steps, err);
    }
    if (st != RLHF_OK) return st;
    const rlhf_algo_ops *ops = &r->loss->plugin->ops.algo;
    if (ops->phase_end) {
        struct rlhf__call call = rlhf__call_begin(r->loss, "phase_end()");
        st = rlhf__call_end(&call, ops->phase_end(r->loss->self, replay->rounds), err);
    }
    if (st != RLHF_OK) return st;
    for (uint32_t k = 0; k < n; k++)
        out->replayed += pick[k] < replay->n_history;
    out->fresh = (int64_t)n - out->replayed;
    out->steps = steps;
    out->loss = r->caught_loss;
    out->accuracy = r->caught_accuracy;
    out->margin = r->caught_margin;
    return RLHF_OK;
}

// Share of the fresh pairs whose chosen response has the higher reward.
static rlhf_status fresh_accuracy(const struct rlhf__reward_round *r,
                                  const struct rlhf__replay *replay, double *out,
                                  struct rlhf__error *err) {
    uint32_t n = (uint32_t)(replay->n - replay->n_history), right = 0;
    struct rlhf__episodes e = {0};
    uint32_t *pick = calloc((size_t)n + 1, sizeof *pick);
    float *seq = calloc(2 * (size_t)n + 1, sizeof *seq);
    rlhf_status st = RLHF_OK;
    if (!pick || !seq) st = RLHF__NOMEM(err, "out of memory for %u pairs", n);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        pick[i] = (uint32_t)replay->n_history + i;
    if (st == RLHF_OK) st = rlhf__replay_rows(replay, pick, n, &e, err);
    if (st == RLHF_OK)
        st = rlhf__reward_model_score(r->rm, e.n, e.ids, e.offset, e.prompt_len, 0, seq, NULL, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        right += seq[2 * i] > seq[2 * i + 1];
    *out = (double)right / (double)n;
    rlhf__episodes_finish(&e);
    free(pick);
    free(seq);
    return st;
}

// ---- gain and bias ----

static rlhf_status calibrate(struct rlhf__reward_round *r, const struct rlhf__episodes *e,
                             struct rlhf__error *err) {
    struct rlhf__scorer s = {.config = r->t->config, .rules = r->t->cast.rules};
    struct rlhf__scored x = {0};
    struct rlhf__cut_rows c = {0};
    struct rlhf__prompt *prompt = calloc(e->n ? e->n : 1, sizeof *prompt);
    int fitted = 0;
    rlhf_status st = RLHF_OK;
    if (!prompt) st = RLHF__NOMEM(err, "out of memory for samples of the reference");
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++)
        prompt[i] = rlhf__rollout_source_prompt(r->t->rollout, e, i);
    if (st == RLHF_OK) st = rlhf__scored_init(&x, &s, e, prompt, err);
    if (st == RLHF_OK) st = rlhf__cut_rows_init(&c, &x, e, err);
    if (st == RLHF_OK)
        st =
            rlhf__reward_model_calibrate(r->rm, e->n, c.ids, c.offset, e->prompt_len, &fitted, err);
    if (st == RLHF_OK && !fitted)
        rlhf__logf(
            r->t->report.log, RLHF_LOG_WARN,
            "gain and bias of the reward model stay: its rewards of %u samples are all equal",
            e->n);
    rlhf__cut_rows_finish(&c);
    rlhf__scored_finish(&x);
    free(prompt);
    return st;
}

static rlhf_status refit(struct rlhf__reward_round *r, uint64_t syncs, struct rlhf__error *err) {
    uint32_t n = (uint32_t)r->t->config->score.calibrate;
    struct rlhf__episodes e = {0};
    if (n == 0) return RLHF_OK;
    rlhf_status st = rlhf__rollout_source_sample(r->t->rollout, r->t, r->t->cast.reference, n,
                                                 "refit", syncs << 24, &e, err);
    if (st == RLHF_OK) st = calibrate(r, &e, err);
    rlhf__episodes_finish(&e);
    return st;
}

rlhf_status rlhf__reward_round_run(struct rlhf__reward_round *r, struct rlhf__replay *replay,
                                   uint64_t syncs, const rlhf_reward_update *u,
                                   rlhf_reward_update_report *report, struct rlhf__error *err) {
    uint32_t *pick = NULL, n = 0;
    rlhf_status st = check(u, err);
    if (st == RLHF_OK)
        st = rlhf__replay_round(replay, (uint64_t)r->t->config->run.seed, u->epochs,
                                u->replay_share, &pick, &n, err);
    if (st == RLHF_OK && n > 0) st = fresh_accuracy(r, replay, &report->fresh_before, err);
    if (st == RLHF_OK && n > 0) st = train(r, replay, u, pick, n, report, err);
    if (st == RLHF_OK && n > 0) st = fresh_accuracy(r, replay, &report->fresh_after, err);
    free(pick);
    if (st != RLHF_OK) return st;
    rlhf__replay_retire(replay, (size_t)u->history_max);
    report->history = (int64_t)replay->n_history;
    return n > 0 && u->refit ? refit(r, syncs, err) : RLHF_OK;
}
