// phase_run.c: see phase_run.h.
#include "run/phase_run.h"

#include "base/clock.h"
#include "base/signals.h"
#include "batch/minibatches.h"
#include "data/prompts.h"
#include "feed/recorded_rows.h"
#include "learn/optim.h"
#include "learn/pass_share.h"
#include "learn/plan.h"
#include "learn/policy_view.h"
#include "learn/schedule.h"
#include "model/adapter.h"
#include "report/phase_report.h"
#include "run/ahead_phase.h"

#include <stdlib.h>
#include <string.h>

// Allocate the hidden states of the KL head's other model. They are on the device if both models
// support that, otherwise in host memory.
static rlhf_status allocate_hidden(const struct rlhf__phase *p, struct rlhf__experience *x,
                                   const struct rlhf__model *ref, struct rlhf__pass_out *out,
                                   struct rlhf__error *err) {
    struct rlhf__rows *e = &x->rows;
    e->d_hidden = ref->info.d_model;
    if (ref->info.caps & p->learner->model->info.caps & RLHF_CAP_DEV_HIDDEN) {
        uint64_t tokens = (uint64_t)rlhf__rows_response_tokens(e, 0, e->n);
        x->compute = ref->compute;
        rlhf_status st =
            ref->compute->alloc(ref->compute->ctx, tokens * rlhf__state_bytes(ref), &x->ref_hidden);
        if (st != RLHF_OK)
            return rlhf__compute_fail(rlhf__model_kernels(ref), st, "the reference's hidden states",
                                      err);
        out->dev_hidden = x->ref_hidden;
        return rlhf__rows_refer(e, x->ref_hidden, err);
    }
    size_t cells = (size_t)e->total * (size_t)e->d_hidden;
    out->hidden = e->ref_hidden = calloc(cells ? cells : 1, sizeof(float));
    if (!out->hidden) return RLHF__NOMEM(err, "out of memory for hidden states");
    return RLHF_OK;
}

// Compute a frozen model's log-probs for the rows of x and, for the KL head, its hidden states.
static rlhf_status pass_frozen(const struct rlhf__phase *p, struct rlhf__experience *x,
                               const struct rlhf__model *m, const char *name, float *logp,
                               int hidden, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    rlhf__progress_note(p->report->progress, name);
    struct rlhf__pass_out out = {
        .logp = logp, .watch = rlhf__progress_watch(p->report->progress), .doing = name};
    if (hidden) RLHF_TRY(allocate_hidden(p, x, m, &out, err));
    RLHF_TRY(rlhf__pass_share(cast->share.team, m, &x->rows, &cast->logp_dist,
                              p->learner->microbatch_tokens, &out, err));
    if (rlhf__cast_samples(cast)) rlhf__model_trim(m);
    return RLHF_OK;
}

// Returns 1 if the KL head needs hidden states of m that the rows do not have yet.
static int lacks_hidden(const struct rlhf__phase *p, const struct rlhf__model *m) {
    const struct rlhf__rows *e = &p->x.rows;
    return m == rlhf__cast_kl_model(p->cast) && !e->ref_hidden && !e->ref_row;
}

static rlhf_status refer(const struct rlhf__phase *p, struct rlhf__experience *x, int hidden,
                         struct rlhf__error *err) {
    RLHF_TRY(pass_frozen(p, x, p->cast->reference, "reference", x->rows.token[RLHF__LOGP_REF],
                         hidden, err));
    x->referred = 1;
    return RLHF_OK;
}

// Compute the log-probs of the named models. A model that has several names runs once.
static rlhf_status pass_named(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    struct rlhf__rows *e = &p->x.rows;
    RLHF_TRY(rlhf__rows_add_named(e, cast->plan.n_named, err));
    for (uint32_t i = 0; i < cast->plan.n_named; i++) {
        const struct rlhf__model *m = cast->named[i];
        const float *same = p->x.referred && m == cast->reference ? e->token[RLHF__LOGP_REF] : NULL;
        for (uint32_t k = 0; k < i && !same; k++)
            if (cast->named[k] == m) same = e->named[k];
        if (same)
            memcpy(e->named[i], same, (size_t)e->total * sizeof *same);
        else
            RLHF_TRY(pass_frozen(p, &p->x, m, cast->plan.named[i], e->named[i], lacks_hidden(p, m),
                                 err));
    }
    return RLHF_OK;
}

// Run the reference, if the run needs it and it has not run on these rows. Then run the named
// models.
static rlhf_status pass_reference(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    if (rlhf__cast_wants_reference(cast)) {
        const int hidden = lacks_hidden(p, cast->reference);
        if (!p->x.referred || hidden) RLHF_TRY(refer(p, &p->x, hidden, err));
    }
    return pass_named(p, err);
}

// Rows with hidden states cannot be joined. If there may be further rounds of prompts, the hidden
// states are therefore computed at the end.
rlhf_status rlhf__phase_refer(const struct rlhf__phase *p, struct rlhf__experience *x,
                              struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    const double from = rlhf__seconds();
    if (!cast->rewards_refer) return RLHF_OK;
    RLHF_TRY(refer(p, x,
                   rlhf__cast_kl_model(cast) == cast->reference && cast->plan.resample_rounds == 0,
                   err));
    p->report->times.reference += rlhf__seconds() - from;
    return RLHF_OK;
}

void rlhf__phase_trim(const struct rlhf__phase *p) {
    if (!rlhf__cast_samples(p->cast)) return;
    rlhf__model_trim(p->cast->policy);
    rlhf__model_trim(p->cast->critic);
}

// Compute the values before any update and, if the plan asks for it, recompute the old log-probs.
static rlhf_status pass_policy(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    struct rlhf__rows *e = &p->x.rows;
    int recompute = (cast->plan.flags & RLHF_PLAN_RECOMPUTE_LOGP) != 0;
    int64_t tokens = p->learner->microbatch_tokens;
    struct rlhf__pass_out out = {.flops = &p->learner->flops,
                                 .watch = rlhf__progress_watch(p->report->progress),
                                 .doing = "values"};
    if (cast->plan.heads & RLHF_HEAD_VALUE) out.value = e->token[RLHF__VALUE_OLD];
    if (cast->critic) {
        rlhf_status st = rlhf__pass_share(cast->share.team, cast->critic, e, &cast->logp_dist,
                                          tokens, &out, err);
        if (st != RLHF_OK) return st;
        out.value = NULL;
    }
    if (recompute) out.logp = e->token[RLHF__LOGP_OLD];
    rlhf_status st = RLHF_OK;
    if (out.value || out.logp)
        st = rlhf__pass_share(cast->share.team, cast->policy, e, &cast->logp_dist, tokens, &out,
                              err);
    if (st == RLHF_OK && recompute && rlhf__cast_samples(cast))
        rlhf__learner_compare(p->learner, e, 0, e->n, e->token[RLHF__LOGP_SAMPLED],
                              e->token[RLHF__LOGP_OLD]);
    return st;
}

rlhf_status rlhf__phase_passes(struct rlhf__phase *p, struct rlhf__error *err) {
    RLHF_TRY(pass_reference(p, err));
    RLHF_TRY(pass_policy(p, err));
    rlhf__phase_trim(p);
    return RLHF_OK;
}

// ---- updates ----

static int minibatch_scope(const struct rlhf__phase *p) {
    return (p->cast->plan.flags & RLHF_PLAN_MINIBATCH_SCOPE) != 0;
}

static int64_t finished_tokens(const struct rlhf__rows *e) {
    int64_t tokens = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->finished[i]) tokens += rlhf__rows_response_tokens(e, i, i + 1);
    return tokens;
}

static rlhf_status check_use(const struct rlhf__instance *algo, const struct rlhf__rows *e,
                             struct rlhf__error *err) {
    for (uint32_t i = 0; i < e->n; i++)
        if (e->use[i] >= RLHF__ROW_USES)
            return rlhf__fail(err, RLHF_E_INTERNAL,
                              "%s says that row %u is used as %d, which this host does not know",
                              algo->plugin->desc.id, i, e->use[i]);
    return RLHF_OK;
}

// Returns the data rows of the prompts of e, or NULL if the run's rows come from a file. The caller
// frees *out.
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

// Call advantages() for e, which is the phase's batch or one minibatch of it.
static rlhf_status advantages(const struct rlhf__phase *p, struct rlhf__rows *e,
                              struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    const struct rlhf__rows *batch = &p->x.rows;
    int value = (cast->plan.heads & RLHF_HEAD_VALUE) != 0, part = minibatch_scope(p);
    rlhf_rollout r = {.size = sizeof r,
                      .n = e->n,
                      .total = e->total,
                      .max_new_tokens = (uint32_t)rlhf__config_most_drawn(p->config),
                      .phase = p->count->phase,
                      .offset = e->offset,
                      .prompt_len = e->prompt_len,
                      .group = e->group,
                      .finished = e->finished,
                      .score = e->score,
                      .token_reward = e->token[RLHF__TOKEN_REWARD],
                      .logp_old = e->token[RLHF__LOGP_OLD],
                      .logp_ref =
                          rlhf__plan_wants_reference(&cast->plan) ? e->token[RLHF__LOGP_REF] : NULL,
                      .value_old = value ? e->token[RLHF__VALUE_OLD] : NULL,
                      .advantage = e->token[RLHF__ADVANTAGE],
                      .returns = e->token[RLHF__RETURNS],
                      .batch_score = part ? batch->reward : NULL,
                      .batch_tokens = part ? rlhf__rows_response_tokens(batch, 0, batch->n) : 0,
                      .batch_n = part ? batch->n : 0,
                      .logp_sampled = e->token[RLHF__LOGP_SAMPLED],
                      .version = e->version,
                      .source = e->source,
                      .steps = p->learner->optim->count.step,
                      .use = e->use,
                      .batch_finished_tokens = finished_tokens(batch),
                      .ids = e->ids,
                      .label = e->label};
    rlhf_str *meta;
    const float *named[RLHF_NAMED_MAX];
    for (uint32_t k = 0; k < e->n_named; k++)
        named[k] = e->named[k];
    if (e->n_named) r.logp_named = named;
    RLHF_TRY(data_rows(p, e, &meta, err));
    r.meta = meta;
    memset(r.advantage, 0, (size_t)e->total * sizeof *r.advantage);
    memset(r.returns, 0, (size_t)e->total * sizeof *r.returns);
    memset(r.use, 0, e->n * sizeof *r.use);
    const rlhf_status st = rlhf__view_advantages(cast->algo, e, &r, err);
    free(meta);
    return st == RLHF_OK ? check_use(cast->algo, e, err) : st;
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
    RLHF_TRY(rlhf__learner_minibatch(p->learner, part, epoch, index, factor, stop, err));
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

// Rows of a file are used once, in the order in which the feed gives them.
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
    const rlhf_status settled = rlhf__learner_settle(p->learner, st == RLHF_OK ? err : &unsaid);
    return st == RLHF_OK ? settled : st;
}

// Compute advantages, train for all epochs of minibatches, and write records for log.rollouts. All
// numbers in p->x must be set.
static rlhf_status learn_all(struct rlhf__phase *p, struct rlhf__error *err) {
    const rlhf_plan *plan = &p->cast->plan;
    struct rlhf__minibatches m;
    // All rows from a file form one minibatch. They need advantages() before the minibatch only if
    // the algorithm recomputes log-probs.
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

// ---- the phase ----

// Give the signal handler an estimate of the phase's remaining time, based on earlier phases.
static void tell_signals(const struct rlhf__phase *p) {
    const struct rlhf__report *r = p->report;
    const double done = (double)(p->count->phase - p->count->first_phase);
    rlhf__signals_phase(p->count->phase + 1, done > 0 ? (r->times.start - r->began) / done : -1);
}

// Take the phase's rows and scores from a record.
static rlhf_status collect_recorded(struct rlhf__phase *p, struct rlhf__error *err) {
    p->x.phase = p->count->phase;
    // With rollout.ahead, the record does not say which rows were sampled with the weights of the
    // previous phase, so the version is not known (-1).
    const int64_t version =
        p->config->rollout.ahead && p->count->phase > 0 ? -1 : p->learner->optim->count.step;
    const int supports = rlhf__prompt_feed_keeps_support(p->feed);
    RLHF_TRY(rlhf__recorded_take(p->recorded, p->feed, supports, version, &p->x, err));
    RLHF_TRY(rlhf__phase_score(p, &p->x, 0, err)); // scores nothing; only makes the texts
    RLHF_TRY(rlhf__completions_measure(p, err));
    return pass_reference(p, err);
}

// Returns 1 if no more prompts are needed once the phase has its first rows. The next batch can
// then begin before the rewards are called. (An algorithm that chooses prompts must see the scores
// first.)
static int has_all_prompts(const struct rlhf__phase *p) {
    return !p->recorded && p->cast->plan.resample_rounds == 0 && !p->feed->choice;
}

// Set the epoch of this phase's prompts before the next batch moves the cursor.
static rlhf_status begin_next(const struct rlhf__phase *p, struct rlhf__error *err) {
    rlhf__metrics_set(p->report->metrics, "epoch", rlhf__order_epoch(p->feed->ops->order(p->feed)));
    return rlhf__ahead_phase_begin(p, err);
}

static rlhf_status collect(struct rlhf__phase *p, struct rlhf__error *err) {
    if (p->recorded && !p->trusts && rlhf__cast_samples(p->cast)) return collect_recorded(p, err);
    struct rlhf__phase_times *times = &p->report->times;
    double from = rlhf__seconds();
    p->x.phase = p->count->phase;
    rlhf_status st = p->feed->ops->next(p->feed, (uint64_t)p->count->sequences,
                                        p->learner->optim->count.step, &p->x, err);
    times->rollout = p->x.seconds > 0 ? p->x.seconds : rlhf__seconds() - from;
    if (st == RLHF_OK && has_all_prompts(p)) st = begin_next(p, err);
    if (st == RLHF_OK) st = rlhf__phase_refer(p, &p->x, err);
    double referred = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__phase_score(p, &p->x, 0, err);
    if (st == RLHF_OK && (p->trusts & RLHF__TRUST_SCORES))
        st = rlhf__recorded_score(p->recorded, p->feed, &p->x, err);
    if (st == RLHF_OK && rlhf__cast_samples(p->cast)) st = rlhf__completions_measure(p, err);
    times->reward = rlhf__seconds() - referred;
    if (st == RLHF_OK) st = rlhf__fresh_groups(p, err);
    double complete = rlhf__seconds();
    if (st == RLHF_OK) st = pass_reference(p, err);
    times->reference += rlhf__seconds() - complete;
    return st;
}

// Set the metrics of the rows that are known before training.
static rlhf_status describe(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__metrics *m = p->report->metrics;
    if (!rlhf__cast_samples(p->cast)) {
        rlhf__metrics_set(m, "val/sequence_lengths", (double)e->total / (double)e->n);
        return rlhf__phase_samples(p, p->feed->prompts, err);
    }
    RLHF_TRY(rlhf__phase_samples(p, p->feed->prompts, err));
    return rlhf__judge(p, err);
}

// Evaluate held-out rows every data.eval_every phases and after the last phase.
static rlhf_status evaluate(struct rlhf__phase *p, struct rlhf__error *err) {
    int64_t every = p->config->data.eval_every, done = p->count->phase + 1;
    int due = (every > 0 && done % every == 0) || done == p->count->phases;
    if (p->recorded && rlhf__cast_samples(p->cast)) return RLHF_OK; // it would call the rewards
    const struct rlhf__held_out h = {.phase = done,
                                     .due = due,
                                     .metrics = p->report->metrics,
                                     .samples = p->report->samples,
                                     .tallies = &p->report->rewards};
    return p->feed->ops->evaluate ? p->feed->ops->evaluate(p->feed, &h, err) : RLHF_OK;
}

static rlhf_status update(struct rlhf__phase *p, struct rlhf__error *err) {
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

rlhf_status rlhf__phase_run(struct rlhf__phase *p, struct rlhf__error *err) {
    struct rlhf__phase_times *times = &p->report->times;
    tell_signals(p);
    RLHF_TRY(collect(p, err));
    if (!has_all_prompts(p)) RLHF_TRY(begin_next(p, err));
    rlhf__ahead_phase_rows(p);
    double from = rlhf__seconds();
    RLHF_TRY(pass_policy(p, err));
    rlhf__phase_trim(p);
    double passed = rlhf__seconds();
    RLHF_TRY(describe(p, err));
    double described = rlhf__seconds();
    rlhf__progress_note(p->report->progress, "update");
    RLHF_TRY(update(p, err));
    times->reward += described - passed;
    times->update = passed - from + rlhf__seconds() - described;
    return evaluate(p, err);
}
