// phase_rollout.c: one phase of a rollout algorithm, rlhf__phase_rollout of run.h: responses,
// scores, reference and values, advantages, epochs of minibatches.
#include "learn/pass.h"
#include "run/completions.h"
#include "run/reference.h"
#include "run/rollout_source.h"
#include "run/run.h"
#include "sample/scoring.h"

#include <stdlib.h>
#include <string.h>

// ---- experience ----

static rlhf_status drop_rows(struct rlhf__episodes *e, struct rlhf__scored *x, const uint8_t *keep,
                             struct rlhf__error *err) {
    uint32_t *pick = calloc(e->n ? e->n : 1, sizeof *pick), n = 0;
    if (!pick) return RLHF__NOMEM(err, "out of memory dropping rows");
    for (uint32_t i = 0; i < e->n; i++)
        if (keep[i]) pick[n++] = i;
    rlhf_status st = RLHF_OK;
    if (n < e->n) {
        struct rlhf__episodes left = {0};
        st = rlhf__episodes_pick(&left, e, pick, n, err);
        if (st == RLHF_OK) {
            rlhf__episodes_finish(e);
            *e = left;
            // Texts stay beside their rows: the kept ones move to the front.
            for (uint32_t i = 0; i < n; i++) {
                char *text = x->text[pick[i]];
                x->text[pick[i]] = x->text[i];
                x->text[i] = text;
                x->response[i] = x->response[pick[i]];
                x->prompt[i] = x->prompt[pick[i]];
                x->meta[i] = x->meta[pick[i]];
                x->scored_len[i] = x->scored_len[pick[i]];
                x->no_period[i] = x->no_period[pick[i]];
            }
        }
    }
    free(pick);
    return st;
}

static rlhf_status score(struct rlhf__run *t, struct rlhf__episodes *e, struct rlhf__scored *x,
                         struct rlhf__error *err) {
    struct rlhf__scorer s = {.config = t->config,
                             .rewards = t->cast.rewards,
                             .rules = t->cast.rules,
                             .metric = rlhf__metrics_sink,
                             .metric_ctx = t->report.metrics,
                             .phase = (uint64_t)t->count.phase,
                             .watch = rlhf__progress_watch(t->report.progress)};
    struct rlhf__prompt *prompt = calloc(e->n ? e->n : 1, sizeof *prompt);
    uint8_t *keep = calloc(e->n ? e->n : 1, 1);
    rlhf_status st = RLHF_OK;
    if (!prompt || !keep) st = RLHF__NOMEM(err, "out of memory scoring");
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++)
        prompt[i] = rlhf__rollout_source_prompt(t->rollout, e, i);
    if (st == RLHF_OK) st = rlhf__scored_init(x, &s, e, prompt, err);
    if (st == RLHF_OK) st = rlhf__score(&s, x, e, keep, NULL, err);
    if (st == RLHF_OK) st = drop_rows(e, x, keep, err);
    free(prompt);
    free(keep);
    return st;
}

// Values before any update, and old log-probs when the plan wants them from a second forward.
static rlhf_status pass_policy(struct rlhf__run *t, struct rlhf__episodes *e,
                               struct rlhf__error *err) {
    int recompute = (t->cast.plan.flags & RLHF_PLAN_RECOMPUTE_LOGP) != 0;
    int64_t tokens = t->config->batch.microbatch_tokens;
    struct rlhf__pass_out out = {.flops = &t->learner.flops,
                                 .watch = rlhf__progress_watch(t->report.progress),
                                 .doing = "values"};
    if (t->cast.plan.heads & RLHF_HEAD_VALUE) out.value = e->token[RLHF__VALUE_OLD];
    if (t->cast.critic) {
        rlhf_status st = rlhf__pass(t->cast.critic, e, &t->learner.dist, tokens, &out, err);
        if (st != RLHF_OK) return st;
        out.value = NULL;
    }
    if (recompute) out.logp = e->token[RLHF__LOGP_OLD];
    rlhf_status st = RLHF_OK;
    if (out.value || out.logp)
        st = rlhf__pass(t->cast.policy, e, &t->learner.dist, tokens, &out, err);
    if (st == RLHF_OK && recompute)
        rlhf__learner_compare(&t->learner, e, 0, e->n, e->token[RLHF__LOGP_SAMPLED],
                              e->token[RLHF__LOGP_OLD]);
    return st;
}

static rlhf_status collect(struct rlhf__run *t, struct rlhf__episodes *e, struct rlhf__scored *x,
                           struct rlhf__error *err) {
    double from = rlhf__seconds();
    rlhf__progress_note(t->report.progress, "rollout");
    rlhf_status st = rlhf__rollout_source_next(t->rollout, t, e, err);
    double sampled = rlhf__seconds();
    rlhf__progress_note(t->report.progress, "reward");
    if (st == RLHF_OK) st = score(t, e, x, err);
    double scored = rlhf__seconds();
    rlhf__progress_note(t->report.progress, "reference");
    if (st == RLHF_OK) st = rlhf__reference_pass(t, e, err);
    t->report.times.rollout = sampled - from;
    t->report.times.reward = scored - sampled;
    t->report.times.reference = rlhf__seconds() - scored;
    return st;
}

// ---- updates ----

// `batch` is the phase's whole batch, of which e may be one minibatch.
static rlhf_status advantages(struct rlhf__run *t, struct rlhf__episodes *e,
                              const struct rlhf__episodes *batch, struct rlhf__error *err) {
    int value = (t->cast.plan.heads & RLHF_HEAD_VALUE) != 0, part = e != batch;
    rlhf_rollout r = {.size = sizeof r,
                      .n = e->n,
                      .total = e->total,
                      .max_new_tokens = (int32_t)t->config->sampling.max_new_tokens,
                      .phase = (uint64_t)t->count.phase,
                      .offset = e->offset,
                      .prompt_len = e->prompt_len,
                      .group = e->group,
                      .finished = e->finished,
                      .score = e->score,
                      .token_reward = e->token[RLHF__TOKEN_REWARD],
                      .logp_old = e->token[RLHF__LOGP_OLD],
                      .logp_ref =
                          rlhf__plan_compares(&t->cast.plan) ? e->token[RLHF__LOGP_REF] : NULL,
                      .value_old = value ? e->token[RLHF__VALUE_OLD] : NULL,
                      .advantage = e->token[RLHF__ADVANTAGE],
                      .returns = e->token[RLHF__RETURNS],
                      .batch_score = part ? batch->reward : NULL,
                      .batch_tokens = part ? rlhf__episodes_response_tokens(batch, 0, batch->n) : 0,
                      .batch_n = part ? batch->n : 0,
                      .logp_sampled = e->token[RLHF__LOGP_SAMPLED],
                      .version = e->version,
                      .steps = t->optim->step};
    memset(r.advantage, 0, (size_t)e->total * sizeof *r.advantage);
    memset(r.returns, 0, (size_t)e->total * sizeof *r.returns);
    struct rlhf__call call = rlhf__call_begin(t->cast.algo, "advantages()");
    return rlhf__call_end(&call, t->cast.algo->plugin->ops.algo.advantages(t->cast.algo->self, &r),
                          err);
}

// A fresh permutation of 0..n-1: Fisher and Yates with the stream "minibatch", a block of counters
// of its own for every (phase, epoch).
static void permute(const struct rlhf__run *t, uint32_t epoch, uint32_t *perm, uint32_t n) {
    rlhf_rng r = {(uint64_t)t->config->run.seed, rlhf_rng_stream("minibatch"),
                  ((uint64_t)t->count.phase * 65536 + epoch) << 32};
    for (uint32_t i = 0; i < n; i++)
        perm[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)rlhf_rng_below(&r, i), keep = perm[i - 1];
        perm[i - 1] = perm[j];
        perm[j] = keep;
    }
}

// How a batch is cut into minibatches: by groups where there are enough of them, else by rows.
// Minibatch k has the units unit[k * units / parts .. (k + 1) * units / parts) of an epoch.
struct cut {
    uint32_t units, parts;
    uint32_t *unit;  // [units] permuted
    uint32_t *begin; // [units + 1] rows of unit u: [begin[u], begin[u + 1])
    uint32_t *pick;  // [rows] of a minibatch
};

static void cut_finish(struct cut *c) {
    free(c->unit);
    free(c->begin);
    free(c->pick);
}

static rlhf_status cut_init(struct cut *c, const struct rlhf__episodes *e, const rlhf_plan *p,
                            struct rlhf__error *err) {
    uint32_t want = (uint32_t)p->minibatches, groups = 0;
    size_t n = e->n;
    *c = (struct cut){.unit = calloc(n + 1, sizeof *c->unit),
                      .begin = calloc(n + 1, sizeof *c->begin),
                      .pick = calloc(n + 1, sizeof *c->pick)};
    if (!c->unit || !c->begin || !c->pick) {
        cut_finish(c);
        return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    }
    for (uint32_t i = 0; i < e->n; i = rlhf__episodes_group_end(e, i))
        c->begin[groups++] = i;
    // Rows may have been dropped since the sizes were checked: fewer groups than minibatches then
    // make fewer minibatches, if they must be whole.
    int whole = groups >= want || (p->flags & RLHF_PLAN_WHOLE_GROUPS);
    c->units = whole ? groups : e->n;
    for (uint32_t i = 0; !whole && i < e->n; i++)
        c->begin[i] = i;
    c->begin[c->units] = e->n;
    c->parts = want < c->units ? want : c->units;
    return RLHF_OK;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Rows of minibatch k; how many.
static uint32_t cut_pick(const struct cut *c, const rlhf_plan *p, uint32_t k) {
    uint32_t n = 0;
    uint32_t from = (uint32_t)((uint64_t)k * c->units / c->parts);
    uint32_t to = (uint32_t)((uint64_t)(k + 1) * c->units / c->parts);
    for (uint32_t u = from; u < to; u++)
        for (uint32_t i = c->begin[c->unit[u]]; i < c->begin[c->unit[u] + 1]; i++)
            c->pick[n++] = i;
    // In order, so that single rows of a group stand together.
    if (p->group_size > 1) qsort(c->pick, n, sizeof *c->pick, by_number);
    return n;
}

// ---- what is kept of them, with log.rollouts ----

static rlhf_status log_rows(struct rlhf__run *t, const struct rlhf__episodes *e,
                            struct rlhf__error *err) {
    int64_t *prompt = calloc(e->n ? e->n : 1, sizeof *prompt);
    if (!prompt) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    for (uint32_t i = 0; i < e->n; i++)
        prompt[i] = rlhf__rollout_source_prompt(t->rollout, e, i).row;
    uint32_t flags = rlhf__plan_compares(&t->cast.plan) ? RLHF__LOG_REFERENCE : 0;
    if (t->cast.plan.heads & RLHF_HEAD_VALUE) flags |= RLHF__LOG_VALUE;
    if (!(t->cast.plan.flags & RLHF_PLAN_MINIBATCH_SCOPE)) flags |= RLHF__LOG_ADVANTAGES;
    rlhf__rollout_log_rows(t->report.rollout_log, t->count.phase + 1, e, prompt, flags);
    free(prompt);
    return RLHF_OK;
}

static void log_update(struct rlhf__run *t, const struct rlhf__episodes *part, const uint32_t *pick,
                       uint32_t epoch, uint32_t index) {
    const struct rlhf__learner *l = &t->learner;
    int own = (t->cast.plan.flags & RLHF_PLAN_MINIBATCH_SCOPE) != 0;
    rlhf__rollout_log_update(
        t->report.rollout_log,
        &(struct rlhf__rollout_log_update){.epoch = epoch,
                                           .minibatch = index,
                                           .n = part->n,
                                           .skipped = l->last.skipped,
                                           .row = pick,
                                           .own = own ? part : NULL,
                                           .loss = l->last_loss,
                                           .grad_norm = l->last.grad_norm,
                                           .grad_norm_clipped = l->last.grad_norm_clipped});
}

static rlhf_status minibatch(struct rlhf__run *t, const struct rlhf__episodes *e,
                             const uint32_t *pick, uint32_t n, uint32_t epoch, uint32_t index,
                             int32_t *stop, struct rlhf__error *err) {
    struct rlhf__episodes part = {0};
    rlhf_status st = rlhf__episodes_pick(&part, e, pick, n, err);
    if (st == RLHF_OK && (t->cast.plan.flags & RLHF_PLAN_MINIBATCH_SCOPE))
        st = advantages(t, &part, e, err);
    if (st == RLHF_OK)
        st = rlhf__learner_minibatch(&t->learner, &part, epoch, index, rlhf__run_lr_factor(t), stop,
                                     err);
    if (st == RLHF_OK && t->report.rollout_log) log_update(t, &part, pick, epoch, index);
    rlhf__episodes_finish(&part);
    return st;
}

static rlhf_status update(struct rlhf__run *t, struct rlhf__episodes *e, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (!(t->cast.plan.flags & RLHF_PLAN_MINIBATCH_SCOPE)) st = advantages(t, e, e, err);
    if (st == RLHF_OK && t->report.rollout_log) st = log_rows(t, e, err);
    struct cut c;
    if (st == RLHF_OK) st = cut_init(&c, e, &t->cast.plan, err);
    if (st != RLHF_OK) return st;
    t->learner.epoch_minibatches = c.parts;
    t->learner.rows = 0;
    t->learner.rows_all = (int64_t)e->n * t->cast.plan.epochs;
    t->learner.comparing =
        (t->cast.plan.heads & RLHF_HEAD_LOGP) && !(t->cast.plan.flags & RLHF_PLAN_RECOMPUTE_LOGP);
    int32_t stop = 0;
    for (uint32_t epoch = 0; st == RLHF_OK && !stop && epoch < (uint32_t)t->cast.plan.epochs;
         epoch++) {
        permute(t, epoch, c.unit, c.units);
        for (uint32_t k = 0; st == RLHF_OK && !stop && k < c.parts; k++) {
            uint32_t n = cut_pick(&c, &t->cast.plan, k);
            st = minibatch(t, e, c.pick, n, epoch, k, &stop, err);
        }
    }
    cut_finish(&c);
    return st;
}

// What can fail for reasons outside (a reward, a judge, a file) comes before the first step, so
// that the weights are still those of the boundary.
rlhf_status rlhf__phase_rollout(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__episodes e = {0};
    struct rlhf__scored x = {0};
    rlhf_status st = collect(t, &e, &x, err);
    double from = rlhf__seconds();
    if (st == RLHF_OK) st = pass_policy(t, &e, err);
    double passed = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__completions_report(t, &e, &x, err);
    if (st == RLHF_OK) st = rlhf__iteration_take(&t->iteration, &e, &x, err);
    double judged = rlhf__seconds();
    rlhf__episodes_finish(&e);
    rlhf__scored_finish(&x);
    rlhf__progress_note(t->report.progress, "update");
    if (st == RLHF_OK) st = update(t, &t->iteration.rows, err);
    if (st == RLHF_OK && t->report.rollout_log)
        st = rlhf__rollout_log_write(t->report.rollout_log, err);
    t->report.times.reward += judged - passed;
    t->report.times.update = passed - from + rlhf__seconds() - judged;
    return st;
}
