// phase_update.c: see phase_update.h.
#include "run/phase_update.h"

#include "batch/minibatches.h"
#include "batch/row_columns.h"
#include "data/prompts.h"
#include "learn/minibatch.h"
#include "learn/optim.h"
#include "learn/plan.h"
#include "learn/policy_view.h"
#include "learn/schedule.h"
#include "learn/shards.h"
#include "model/adapter.h"
#include "run/phase_passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- advantages ----

static int minibatch_scope(const struct rlhf__phase *p) {
    return (p->cast->plan.flags & RLHF_PLAN_MINIBATCH_SCOPE) != 0;
}

static int64_t finished_tokens(const struct rlhf__rows *e) {
    int64_t tokens = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->finished[i]) tokens += rlhf__rows_response_tokens(e, i, i + 1);
    return tokens;
}

// Returns the first of x[from, to) that is not finite, or NULL.
static const float *not_finite(const float *x, int32_t from, int32_t to) {
    while (from < to && isfinite(x[from]))
        from++;
    return from < to ? &x[from] : NULL;
}

// Record the rows whose response has an advantage or a return that is not finite, with the other
// rows of their groups. Returns the number of rows that are used and not recorded.
static uint32_t find_odd(const struct rlhf__rows *e, uint8_t *odd, struct rlhf__odd_rows *count) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        const int32_t from = e->offset[i] + e->prompt_len[i], to = e->offset[i + 1];
        const float *x = not_finite(e->token[RLHF__ADVANTAGE], from, to);
        const int is_return = !x;
        if (!x) x = not_finite(e->token[RLHF__RETURNS], from, to);
        if (!x || e->use[i] == RLHF_USE_EXCLUDED) continue;
        if (!count->rows)
            *count = (struct rlhf__odd_rows){.row = i, .value = *x, .is_return = is_return};
        for (uint32_t k = 0; k < e->n; k++) {
            if (odd[k] || e->group[k] != e->group[i] || e->use[k] == RLHF_USE_EXCLUDED) continue;
            odd[k] = 1;
            count->rows++;
        }
    }
    for (uint32_t i = 0; i < e->n; i++)
        left += !odd[i] && e->use[i] != RLHF_USE_EXCLUDED;
    return left;
}

// Exclude these rows, as rlhf/algo.h says. Otherwise one number would make the loss NaN, and the
// whole minibatch would be skipped. If these are all rows, excludes none, so that the update is
// skipped and counts as skipped.
static rlhf_status exclude_odd(struct rlhf__rows *e, struct rlhf__odd_rows *count,
                               struct rlhf__error *err) {
    uint8_t *odd = calloc((size_t)e->n + 1, 1);
    if (!odd) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    const uint32_t left = find_odd(e, odd, count);
    for (uint32_t i = 0; left && i < e->n; i++)
        if (odd[i]) e->use[i] = RLHF_USE_EXCLUDED;
    free(odd);
    return RLHF_OK;
}

// Set *out to the data rows from which the prompts of e were made, one for each row of e. If the
// run's rows come from a file, sets *out to NULL. The caller frees *out.
static rlhf_status data_rows(const struct rlhf__phase *p, const struct rlhf__rows *e,
                             rlhf_str **out, struct rlhf__error *err) {
    const struct rlhf__prompts *prompts = p->feed->prompts;
    *out = NULL;
    if (!prompts) return RLHF_OK;
    *out = calloc((size_t)e->n + 1, sizeof **out);
    if (!*out) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    for (uint32_t i = 0; i < e->n; i++)
        (*out)[i] = rlhf__prompts_get(prompts, e->source[i]).meta;
    return RLHF_OK;
}

// If the algorithm uses each reward's score, set the names and weights of the rewards. The caller
// frees *names and *weights.
static rlhf_status name_rewards(const struct rlhf__phase *p, const struct rlhf__rows *e,
                                const char ***names, double **weights, rlhf_rollout *r,
                                struct rlhf__error *err) {
    const struct rlhf__config *c = p->config;
    *names = NULL;
    *weights = NULL;
    if (!e->reward_score) return RLHF_OK;
    *names = calloc((size_t)e->n_rewards + 1, sizeof **names);
    *weights = calloc((size_t)e->n_rewards + 1, sizeof **weights);
    if (!*names || !*weights) return RLHF__NOMEM(err, "out of memory for %u rewards", e->n_rewards);
    for (uint32_t k = 0; k < e->n_rewards; k++) {
        const int plugin = k < c->n_reward;
        (*names)[k] = plugin ? c->reward[k].name : "environment";
        (*weights)[k] = plugin ? c->reward[k].weight : c->environment.weight;
    }
    r->n_rewards = e->n_rewards;
    r->reward_name = *names;
    r->reward_weight = *weights;
    return RLHF_OK;
}

// Call advantages() for e, which is the phase's batch or one minibatch of it.
static rlhf_status advantages(const struct rlhf__phase *p, struct rlhf__rows *e,
                              struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    const struct rlhf__rows *batch = &p->x.rows;
    const int part = minibatch_scope(p);
    rlhf_rollout r = {.n = e->n,
                      .total = e->total,
                      .max_new_tokens = (uint32_t)rlhf__config_most_drawn(p->config),
                      .phase = p->count->phase,
                      .steps = p->learner->optim->count.step,
                      .offset = e->offset,
                      .batch_score = part ? batch->reward : NULL,
                      .batch_tokens = part ? rlhf__rows_response_tokens(batch, 0, batch->n) : 0,
                      .batch_finished_tokens = finished_tokens(batch),
                      .batch_n = part ? batch->n : 0};
    rlhf_advantages out = {0};
    const char **names;
    double *weights;
    rlhf_str *meta = NULL;
    const float *named[RLHF_NAMED_MAX];
    for (uint32_t k = 0; k < e->n_named; k++)
        named[k] = e->named[k];
    rlhf__columns_to_rollout(e, rlhf__plan_columns(&cast->plan), &r);
    rlhf__columns_to_results(e, &out);
    if (e->n_named) r.logp_named = named;
    rlhf_status st = name_rewards(p, e, &names, &weights, &r, err);
    if (st == RLHF_OK) st = data_rows(p, e, &meta, err);
    r.meta = meta;
    if (st == RLHF_OK) st = rlhf__view_advantages(cast->algo, e, &r, &out, err);
    free(names);
    free(weights);
    free(meta);
    RLHF_TRY(st);
    return exclude_odd(e, &p->learner->odd, err);
}

// Prepare the phase's batch for the updates: the numbers of its rows, and the columns and flags
// that the plan asks for.
static rlhf_status prepare(struct rlhf__phase *p, struct rlhf__error *err) {
    const rlhf_plan *plan = &p->cast->plan;
    struct rlhf__rows *e = &p->x.rows;
    rlhf__rows_number(e);
    e->flags |= rlhf__plan_row_flags(plan);
    e->carry_rows = plan->carry_rows;
    e->carry_tokens = plan->carry_tokens;
    if (plan->carry_rows) RLHF_TRY(RLHF__ROWS_ADD(e, carry_row, err));
    return plan->carry_tokens ? RLHF__ROWS_ADD(e, carry_token, err) : RLHF_OK;
}

// ---- records for log.rollouts ----

static rlhf_status log_rows(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    int64_t *prompt = calloc(e->n ? e->n : 1, sizeof *prompt);
    if (!prompt) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    for (uint32_t i = 0; i < e->n; i++)
        prompt[i] = rlhf__prompts_get(p->feed->prompts, e->source[i]).row;
    uint32_t flags = rlhf__cast_wants_reference(p->cast) ? RLHF__LOG_REFERENCE : 0;
    if (p->cast->plan.heads & RLHF_HEAD_VALUE) flags |= RLHF__LOG_VALUE;
    if (!minibatch_scope(p)) flags |= RLHF__LOG_ADVANTAGES;
    rlhf__rollout_log_rows(p->report->rollout_log, p->count->phase + 1, e, prompt,
                           p->cast->plan.named, flags);
    free(prompt);
    return RLHF_OK;
}

static void log_update(const struct rlhf__phase *p, const struct rlhf__rows *part,
                       const uint32_t *pick, uint32_t epoch, uint32_t index) {
    const struct rlhf__learner *l = p->learner;
    rlhf__rollout_log_update(
        p->report->rollout_log,
        &(struct rlhf__rollout_log_update){.epoch = epoch,
                                           .minibatch = index,
                                           .n = part->n,
                                           .skipped = l->last.skipped,
                                           .row = pick,
                                           .part = part,
                                           .own = minibatch_scope(p),
                                           .loss = l->last_loss,
                                           .grad_norm = l->last.grad_norm,
                                           .grad_norm_clipped = l->last.grad_norm_clipped});
}

// ---- minibatches ----

// Returns 1 if `pick` lists all rows of e in order, so that they need not be copied.
static int is_whole(const struct rlhf__rows *e, const uint32_t *pick, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (pick[i] != i) return 0;
    return n == e->n;
}

static rlhf_status learn(struct rlhf__phase *p, struct rlhf__rows *part, const uint32_t *pick,
                         uint32_t epoch, uint32_t index, int32_t *stop, struct rlhf__error *err) {
    const struct rlhf__count *c = p->count;
    if (minibatch_scope(p)) RLHF_TRY(advantages(p, part, err));
    double factor = rlhf__schedule_factor(&p->config->optim, c->phase, c->horizon);
    RLHF_TRY(rlhf__minibatch(p->learner, part, epoch, index, factor, stop, err));
    if (p->report->rollout_log) log_update(p, part, pick, epoch, index);
    return RLHF_OK;
}

static rlhf_status minibatch(struct rlhf__phase *p, const uint32_t *pick, uint32_t n,
                             uint32_t epoch, uint32_t index, int32_t *stop,
                             struct rlhf__error *err) {
    struct rlhf__rows *e = &p->x.rows, part = {0};
    int whole = is_whole(e, pick, n);
    rlhf_status st = whole ? RLHF_OK : rlhf__rows_pick(&part, e, pick, n, err);
    if (st == RLHF_OK) st = learn(p, whole ? e : &part, pick, epoch, index, stop, err);
    rlhf__rows_finish(&part);
    return st;
}

// Train on all minibatches of all epochs. Rows of a file are used once, in the order in which the
// feed gives them.
static rlhf_status epochs(struct rlhf__phase *p, struct rlhf__minibatches *m,
                          struct rlhf__error *err) {
    const rlhf_plan *plan = &p->cast->plan;
    int samples = rlhf__cast_samples(p->cast);
    int compare =
        samples && (plan->heads & RLHF_HEAD_LOGP) && !(plan->flags & RLHF_PLAN_RECOMPUTE_LOGP);
    int32_t stop = 0;
    struct rlhf__error unsaid;
    rlhf_status st = RLHF_OK;
    rlhf__learner_expect(p->learner, m->parts, (int64_t)p->x.rows.n * plan->epochs, compare);
    for (uint32_t epoch = 0; st == RLHF_OK && !stop && epoch < (uint32_t)plan->epochs; epoch++) {
        if (samples)
            rlhf__minibatches_shuffle(m, (uint64_t)p->config->run.seed, p->count->phase, epoch);
        for (uint32_t k = 0; st == RLHF_OK && !stop && k < m->parts; k++) {
            uint32_t n = rlhf__minibatches_pick(m, k);
            p->learner->more =
                !minibatch_scope(p) && (k + 1 < m->parts || epoch + 1 < (uint32_t)plan->epochs);
            st = minibatch(p, m->pick, n, epoch, k, &stop, err);
        }
    }
    const rlhf_status settled = rlhf__shards_settle(p->learner, st == RLHF_OK ? err : &unsaid);
    return st == RLHF_OK ? settled : st;
}

// Compute advantages, train for all epochs of minibatches, and write records for log.rollouts. The
// passes must have filled p->x (phase_passes.h).
static rlhf_status learn_all(struct rlhf__phase *p, struct rlhf__error *err) {
    const rlhf_plan *plan = &p->cast->plan;
    struct rlhf__minibatches m;
    // Rows from a file form a single minibatch. For such rows, advantages() is called before the
    // minibatch only if the algorithm recomputes log-probs.
    RLHF_TRY(prepare(p, err));
    const int looks = rlhf__cast_samples(p->cast) || (plan->flags & RLHF_PLAN_RECOMPUTE_LOGP);
    if (looks && !minibatch_scope(p)) RLHF_TRY(advantages(p, &p->x.rows, err));
    if (p->report->rollout_log) RLHF_TRY(log_rows(p, err));
    RLHF_TRY(rlhf__minibatches_init(&m, &p->x.rows, (uint32_t)plan->minibatches,
                                    (plan->flags & RLHF_PLAN_WHOLE_GROUPS) != 0,
                                    plan->group_size > 1, err));
    rlhf_status st = epochs(p, &m, err);
    rlhf__minibatches_finish(&m);
    if (st != RLHF_OK || !p->report->rollout_log) return st;
    return rlhf__rollout_log_write(p->report->rollout_log, err);
}

rlhf_status rlhf__phase_update(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__model *m = p->learner->model;
    struct rlhf__moved moved = {NULL};
    rlhf_status st = rlhf__moved_begin(&moved, m, err);
    if (st == RLHF_OK) st = learn_all(p, err);
    rlhf__phase_trim(p);
    p->has_adapter = moved.before != NULL;
    if (st == RLHF_OK && moved.before) st = rlhf__moved_norm(&moved, m, &p->adapter_norm, err);
    rlhf__moved_finish(&moved);
    return st;
}
