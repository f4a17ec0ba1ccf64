// memory_estimate.c: rlhf__estimate_memory of setup.h. It runs one phase, with the largest rows
// that can occur, on models of a memory plan (estimate/memory_plan.h). The plan counts what the
// models allocate, and computes nothing.
#include "setup/setup.h"

#include "base/host_memory.h"
#include "batch/minibatches.h"
#include "estimate/speed.h"
#include "feed/ahead.h"
#include "learn/minibatch.h"
#include "learn/shards.h"
#include "model/adapter.h"
#include "model/free_memory.h"
#include "model/parameters.h"
#include "run/phase_passes.h"

#include <stdio.h>
#include <stdlib.h>

// ---- the update ----

static rlhf_status no_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                           struct rlhf__error *err) {
    (void)self;
    (void)in;
    (void)out;
    (void)err;
    return RLHF_OK;
}

// Find the minibatch of the first epoch that contains the microbatch with the most tokens.
static rlhf_status largest_minibatch(const struct rlhf__phase *p, struct rlhf__rows *out,
                                     struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    const rlhf_plan *plan = &p->cast->plan;
    struct rlhf__minibatches m;
    struct rlhf__rows part = {0};
    uint32_t rows, tokens, most = 0;
    RLHF_TRY(rlhf__minibatches_init(&m, e, (uint32_t)plan->minibatches,
                                    (plan->flags & RLHF_PLAN_WHOLE_GROUPS) != 0,
                                    plan->group_size > 1, err));
    rlhf_status st = RLHF_OK;
    for (uint32_t k = 0; st == RLHF_OK && k < m.parts; k++) {
        const uint32_t n = rlhf__minibatches_pick(&m, k);
        st = rlhf__rows_pick(&part, e, m.pick, n, err);
        if (st != RLHF_OK) break;
        rlhf__rows_largest_slice(&part, p->learner->microbatch_tokens, 0, &rows, &tokens);
        const struct rlhf__rows less = tokens > most ? *out : part;
        if (tokens > most) *out = part;
        if (tokens > most) most = tokens;
        part = less;
        rlhf__rows_finish(&part);
    }
    rlhf__minibatches_finish(&m);
    return st;
}

// Run one update. *share receives the part of the rows' tokens that it trained on.
static rlhf_status update(struct rlhf__phase *p, double *share, struct rlhf__error *err) {
    struct rlhf__rows part = {0};
    int32_t stop = 0;
    rlhf__learner_begin(p->learner);
    rlhf_status st = largest_minibatch(p, &part, err);
    *share = (double)part.total / (double)p->x.rows.total;
    if (st == RLHF_OK) st = rlhf__minibatch(p->learner, &part, 0, 0, 1, &stop, err);
    rlhf__rows_finish(&part);
    rlhf__phase_trim(p);
    return st;
}

// ---- models of rewards ----

// A model that a plugin has already used through a service is in memory, and not on the memory
// plan. Open each of these models a second time, on the plan. Do this before anything else is
// counted, because these models stay in memory for the whole phase.
struct planned_models {
    struct rlhf__model *model[RLHF__OWNERS];
    const struct rlhf__model *of[RLHF__OWNERS];
    size_t n;
};

static rlhf_status open_planned_model(const struct rlhf__run *r, const struct rlhf__model *m,
                                      struct planned_models *t, struct rlhf__error *err) {
    if (m->planned || t->n == RLHF__OWNERS) return RLHF_OK;
    RLHF_TRY(rlhf__model_open(&r->session.models, &m->spec, &t->model[t->n], err));
    t->of[t->n++] = m;
    return RLHF_OK;
}

static rlhf_status open_planned_models(const struct rlhf__run *r, struct planned_models *t,
                                       struct rlhf__error *err) {
    const struct rlhf__served *o;
    if (!rlhf__cast_samples(&r->cast)) return RLHF_OK;
    for (size_t i = 0; (o = rlhf__text_services_at(r->served, i)); i++)
        RLHF_TRY(open_planned_model(r, o->model, t, err));
    return RLHF_OK;
}

// Returns m if m is on the plan. Otherwise returns the copy of m that was opened on the plan, or
// NULL if there is no such copy.
static const struct rlhf__model *planned_model(const struct rlhf__model *m,
                                               const struct planned_models *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->of[i] == m) return t->model[i];
    return m->planned ? m : NULL;
}

static rlhf_status ask_rewards(const struct rlhf__run *r, const struct rlhf__rows *e,
                               const struct planned_models *t, struct rlhf__error *err) {
    const struct rlhf__served *o;
    for (size_t i = 0; (o = rlhf__text_services_at(r->served, i)); i++) {
        const struct rlhf__model *m = planned_model(o->model, t);
        if (m) RLHF_TRY(o->list->kind->largest(o, m, e, err));
    }
    return RLHF_OK;
}

// ---- memory of the host ----

// Returns the bytes of the parameters that an update may change.
static uint64_t params_bytes(const struct rlhf__model *m) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; m && i < m->n_tensors; i++)
        if (!(m->params[i].flags & RLHF_PARAM_FROZEN))
            bytes += (uint64_t)rlhf__param_count(&m->params[i]) * sizeof(float);
    return bytes;
}

// Returns the size of the copy of all values that an update changes (keep/boundary.h). Returns 0 on
// an actor, or if the copy would exceed checkpoint.undo_mib.
static uint64_t rollback_bytes(const struct rlhf__run *r) {
    const struct rlhf__cast *c = &r->cast;
    if (rlhf__run_acts(r)) return 0;
    const uint64_t ranks = c->share.ranks > 1 ? c->share.ranks : 1; // they divide the moments
    const uint64_t params = params_bytes(c->policy) + params_bytes(c->critic);
    uint64_t bytes = params + params * (uint64_t)rlhf__setup_moments(r->config) / ranks;
    if (c->reference && !c->reference->frozen) bytes += params_bytes(c->reference);
    if (r->iteration.trained) {
        const uint64_t trained = params_bytes(r->iteration.trained->model);
        bytes += trained + 2 * trained / ranks;
    }
    return bytes >> 20 < (uint64_t)r->config->checkpoint.undo_mib ? bytes : 0;
}

// Returns the bytes of the rows, of a copy of a minibatch's rows, and of the supports. If `fresh`
// is 1, this includes a second batch of rows, which dynamic sampling may sample and join with the
// first one. `carry` is the number of doubles per token that the algorithm carries.
static uint64_t rows_bytes(const struct rlhf__rows *e, int fresh, uint32_t carry) {
    const uint64_t token = sizeof *e->ids + (RLHF__N_TOKEN_ARRAYS + e->n_named) * sizeof(float) +
                           carry * sizeof *e->carry_token;
    const uint64_t support =
        (uint64_t)rlhf__rows_response_tokens(e, 0, e->n) * e->support_words * sizeof *e->support;
    const uint64_t hidden = e->ref_hidden ? (uint64_t)e->total * (uint64_t)e->d_hidden * 4 : 0;
    return (fresh ? 3 : 2) * (e->total * token + hidden) + 3 * support;
}

// Returns the size of the batch that is being sampled ahead, plus twice the size of the batch's
// file, because each of two phase boundaries holds a copy of that file.
static uint64_t ahead_bytes(const struct rlhf__rows *e) {
    const uint64_t token = sizeof *e->ids + RLHF__N_TOKEN_ARRAYS * sizeof(float);
    const uint64_t file = sizeof *e->ids + sizeof(float);
    const uint64_t support =
        (uint64_t)rlhf__rows_response_tokens(e, 0, e->n) * e->support_words * sizeof *e->support;
    return e->total * (token + 2 * file) + 3 * support;
}

static void count_host(const struct rlhf__run *r, const struct rlhf__rows *e, uint64_t own,
                       struct rlhf__uses *u) {
    const uint32_t host = rlhf__uses_owner(u, "host");
    u->bytes[host][RLHF__USE_ROWS] =
        rows_bytes(e, r->cast.plan.resample_rounds > 0, r->cast.plan.carry_tokens);
    if (r->feed->ahead) u->bytes[host][RLHF__USE_ROWS] += ahead_bytes(e);
    u->bytes[host][RLHF__USE_ROLLBACK] = rollback_bytes(r);
    if (!rlhf__run_acts(r)) u->bytes[host][RLHF__USE_ROLLBACK] += rlhf__moved_bytes(r->cast.policy);
    u->bytes[host][RLHF__USE_WORKSPACE] =
        rlhf__speed_peak_bytes(r->session.compute->table, r->session.models.dtype);
    u->bytes[host][RLHF__USE_PROGRAM] = own;
}

// ---- all of it ----

// Estimate the time of a measurement of held-out rows. If it fails, the run reports the error when
// it measures the rows.
static void measure_held_out(const struct rlhf__run *r, uint32_t rows, double *at,
                             struct rlhf__phase_seconds *s) {
    struct rlhf__held_out_estimate e;
    struct rlhf__error failed;
    if (!(s->update > 0) || !r->feed->ops->estimate_held_out) return;
    if (r->feed->ops->estimate_held_out(r->feed, &e, &failed) != RLHF_OK) return;
    rlhf__time_held_out(r, &e, rows, rlhf__time_lap(r, at), s);
}

static rlhf_status run_phase(const struct rlhf__run *r, struct rlhf__phase *p,
                             const struct planned_models *t, struct rlhf__phase_seconds *s,
                             struct rlhf__error *err) {
    double share = 1, at = 0;
    rlhf__memory_plan_account(r->memory_plan, r->cast.policy->role, RLHF__USE_ACTIVATIONS);
    rlhf__time_lap(r, &at);
    RLHF_TRY(rlhf__phase_passes(p, err));
    s->passes = rlhf__time_lap(r, &at);
    RLHF_TRY(update(p, &share, err));
    s->update = rlhf__time_lap(r, &at) * p->cast->plan.epochs / share;
    if (rlhf__cast_samples(p->cast)) RLHF_TRY(ask_rewards(r, &p->x.rows, t, err));
    s->scoring = rlhf__time_lap(r, &at);
    if (r->feed->typical > 0) {
        s->passes *= r->feed->typical;
        s->update *= r->feed->typical;
    }
    if (r->feed->ops->estimate) {
        RLHF_TRY(r->feed->ops->estimate(r->feed, &p->x, err));
        rlhf__time_sampling(r, &p->x.rows, rlhf__time_lap(r, &at), s);
    }
    measure_held_out(r, p->x.rows.n, &at, s);
    return RLHF_OK;
}

static rlhf_status optimizers(const struct rlhf__run *r, struct rlhf__optim *made[2],
                              struct rlhf__error *err) {
    const struct rlhf__model *const own[] = {r->cast.policy, r->cast.critic};
    for (int i = 0; i < 2; i++) {
        if (!own[i]) continue;
        rlhf__memory_plan_account(r->memory_plan, own[i]->role, RLHF__USE_MOMENTS);
        RLHF_TRY(rlhf__setup_optim(r, own[i], &made[i], err));
    }
    return RLHF_OK;
}

// Count the memory of the sampler. The sampler decodes while the phase runs, so its memory is added
// to the memory of the phase.
static rlhf_status sample_ahead(const struct rlhf__run *r, const struct rlhf__experience *x,
                                rlhf_gen **cache, struct rlhf__error *err) {
    const struct rlhf__sampler *s = r->feed->ahead ? rlhf__ahead_sampler(r->feed->ahead) : NULL;
    if (!s) return RLHF_OK;
    rlhf__memory_plan_second(r->memory_plan, rlhf__sampler_table(s));
    rlhf__memory_plan_account(r->memory_plan, "sampler", RLHF__USE_ACTIVATIONS);
    const rlhf_status st = rlhf__prompt_feed_estimate_ahead(r->feed, x, cache, err);
    rlhf__memory_plan_second(r->memory_plan, NULL);
    return st;
}

static void close_ahead(const struct rlhf__run *r, rlhf_gen *cache) {
    if (!r->feed->ahead || !rlhf__ahead_sampler(r->feed->ahead)) return;
    const struct rlhf__model *m = rlhf__sampler_model(rlhf__ahead_sampler(r->feed->ahead));
    rlhf__model_gen_close(m, cache);
    rlhf__model_trim(m);
}

// Count the memory of an actor, which only samples.
static rlhf_status act_on_plan(const struct rlhf__run *r, struct rlhf__phase *p,
                               struct rlhf__error *err) {
    rlhf__memory_plan_account(r->memory_plan, r->cast.policy->role, RLHF__USE_ACTIVATIONS);
    RLHF_TRY(r->feed->ops->largest(r->feed, &p->x, err));
    return r->feed->ops->estimate(r->feed, &p->x, err);
}

static rlhf_status run_on_plan(struct rlhf__run *r, struct rlhf__phase *p,
                               struct rlhf__error *err) {
    static const struct rlhf__reward_head head = {.pooling = RLHF_POOL_MEAN, .gain = 1};
    struct rlhf__optim *made[2] = {NULL, NULL};
    struct planned_models planned = {.n = 0};
    rlhf_gen *cache = NULL;
    rlhf_status st = open_planned_models(r, &planned, err);
    if (st == RLHF_OK) st = optimizers(r, made, err);
    struct rlhf__learner l = rlhf__setup_learner(r, made[0], made[1]);
    l.objective = (struct rlhf__objective){.loss = no_loss};
    if (r->cast.plan.source == RLHF_SOURCE_PREFERENCES && r->cast.plan.heads & RLHF_HEAD_SCORE)
        l.reward_head = &head;
    l.watch = NULL;
    p->learner = &l;
    if (st == RLHF_OK) {
        rlhf__memory_plan_account(r->memory_plan, r->cast.policy->role, RLHF__USE_GRADIENTS);
        st = rlhf__shards_open(&l, &r->cast.share, err);
    }
    if (st == RLHF_OK) st = r->feed->ops->largest(r->feed, &p->x, err);
    if (st == RLHF_OK) st = sample_ahead(r, &p->x, &cache, err);
    if (st == RLHF_OK) {
        rlhf__time_begin(r, (int64_t)p->x.rows.total);
        st = run_phase(r, p, &planned, &r->seconds, err);
    }
    close_ahead(r, cache);
    p->learner = NULL;
    rlhf__shards_close(&l);
    rlhf__learner_finish(&l);
    while (planned.n > 0)
        rlhf__model_close(planned.model[--planned.n]);
    for (int i = 0; i < 2; i++)
        rlhf__optim_close(made[i]);
    return st;
}

static const char *advice(const struct rlhf__run *r, char *out, size_t cap) {
    const struct rlhf__config *c = r->config;
    const rlhf_compute *t = r->session.compute->table;
    snprintf(out, cap,
             "less is taken with a lower batch.microbatch_tokens (now %lld), sampling.slots (now "
             "%u), sampling.max_new_tokens (now %lld), compute.workspace_mib or "
             "checkpoint.undo_mib, with compute.dtype=bf16%s%s, or by a smaller model%s; "
             "compute.memory_check=false runs it all the same",
             (long long)rlhf__model_microbatch(r->cast.policy, c->batch.microbatch_tokens),
             rlhf__compute_slots(t, c->sampling.slots), (long long)c->sampling.max_new_tokens,
             c->compute.recompute ? "" : ", with compute.recompute=layer",
             c->optim.kind == RLHF__OPTIM_MUON ? "" : ", with optim.kind=muon",
             t->device == RLHF_DEVICE_CPU ? "" : " or compute.backend=cpu");
    return out;
}

rlhf_status rlhf__estimate_memory(struct rlhf__run *r, struct rlhf__memory_need *out,
                                  struct rlhf__error *err) {
    struct rlhf__phase p = {.config = r->config,
                            .cast = &r->cast,
                            .count = &r->count,
                            .feed = r->feed,
                            .report = &r->report};
    struct rlhf__memory_need own, *need = out ? out : &own;
    char lower[512];
    struct rlhf__error failed = {0, ""};
    const uint64_t resident = rlhf__host_memory("").own;
    const rlhf_status counted =
        rlhf__run_acts(r) ? act_on_plan(r, &p, &failed) : run_on_plan(r, &p, &failed);
    if (counted != RLHF_OK)
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "what memory the run takes is known in part only, and whether all of it fits "
                   "is not checked: models are asked first what they would allocate, with a "
                   "backend that computes nothing, and that failed (%s)",
                   failed.text);
    *need = (struct rlhf__memory_need){.uses = *rlhf__memory_plan_peak(r->memory_plan)};
    if (!RLHF_COMPUTE_HAS(r->session.compute->table, workspace_bytes))
        need->uncounted = r->session.compute->table->name;
    if (need->uncounted)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "the compute backend %s does not state the size of its workspaces: the estimate "
                   "of memory does not include them",
                   need->uncounted);
    rlhf__free_memory_get(&r->session.models, need);
    // The resident size already includes the models that rewards have used. Do not count these
    // models twice.
    const uint64_t loaded = need->own_memory ? 0 : need->there;
    count_host(r, &p.x.rows, resident > loaded ? resident - loaded : 0, &need->uses);
    rlhf__experience_finish(&p.x);
    need->lower = advice(r, lower, sizeof lower);
    rlhf_status st = r->session.models.unchecked ? RLHF_OK : rlhf__free_memory_check(need, err);
    need->lower = NULL;
    return st;
}
