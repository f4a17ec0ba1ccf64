// phase_run.c: see phase_run.h.
#include "run/phase_run.h"

#include "base/clock.h"
#include "base/signals.h"
#include "learn/moved.h"
#include "learn/pass.h"
#include "learn/plan.h"
#include "report/completions.h"
#include "run/phase_score.h"

#include <stdlib.h>

// Allocate the reference's hidden states: on the device if both its model and the policy's support
// that, otherwise in host memory.
static rlhf_status hidden_room(struct rlhf__phase *p, struct rlhf__pass_out *out,
                               struct rlhf__error *err) {
    const struct rlhf__model *ref = p->cast->reference;
    struct rlhf__rows *e = &p->x.rows;
    e->d_hidden = ref->info.d_model;
    if (ref->info.caps & p->learner->model->info.caps & RLHF_CAP_DEV_HIDDEN) {
        uint64_t tokens = (uint64_t)rlhf__rows_response_tokens(e, 0, e->n);
        p->x.compute = ref->compute;
        rlhf_status st = ref->compute->alloc(ref->compute->ctx, tokens * rlhf__state_bytes(ref),
                                             &p->x.ref_hidden);
        if (st != RLHF_OK)
            return rlhf__compute_fail(ref->compute, st, "the reference's hidden states", err);
        out->dev_hidden = p->x.ref_hidden;
        return rlhf__rows_refer(e, p->x.ref_hidden, err);
    }
    size_t cells = (size_t)e->total * (size_t)e->d_hidden;
    out->hidden = e->ref_hidden = calloc(cells ? cells : 1, sizeof(float));
    if (!out->hidden) return RLHF__NOMEM(err, "out of memory for hidden states");
    return RLHF_OK;
}

// The reference's values of the rows, if the plan needs them: log-probs and, for the full KL,
// hidden states.
static rlhf_status pass_reference(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    struct rlhf__rows *e = &p->x.rows;
    if (!rlhf__plan_wants_reference(&cast->plan)) return RLHF_OK;
    rlhf__progress_note(p->report->progress, "reference");
    struct rlhf__pass_out out = {.logp = e->token[RLHF__LOGP_REF],
                                 .watch = rlhf__progress_watch(p->report->progress),
                                 .doing = "reference"};
    if (cast->plan.heads & RLHF_HEAD_KL) RLHF_TRY(hidden_room(p, &out, err));
    RLHF_TRY(
        rlhf__pass(cast->reference, e, &cast->logp_dist, p->learner->microbatch_tokens, &out, err));
    if (rlhf__cast_has_rewards(cast)) rlhf__model_trim(cast->reference);
    return RLHF_OK;
}

void rlhf__phase_trim(const struct rlhf__phase *p) {
    if (!rlhf__cast_has_rewards(p->cast)) return;
    rlhf__model_trim(p->cast->policy);
    rlhf__model_trim(p->cast->critic);
}

// Values before any update, and old log-probs if the plan recomputes them.
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
        rlhf_status st = rlhf__pass(cast->critic, e, &cast->logp_dist, tokens, &out, err);
        if (st != RLHF_OK) return st;
        out.value = NULL;
    }
    if (recompute) out.logp = e->token[RLHF__LOGP_OLD];
    rlhf_status st = RLHF_OK;
    if (out.value || out.logp)
        st = rlhf__pass(cast->policy, e, &cast->logp_dist, tokens, &out, err);
    if (st == RLHF_OK && recompute && rlhf__cast_has_rewards(cast))
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

// Give the signal handler an estimate of the phase's remaining time, from earlier phases.
static void tell_signals(const struct rlhf__phase *p) {
    const struct rlhf__report *r = p->report;
    const double done = (double)(p->count->phase - p->count->first_phase);
    rlhf__signals_phase(p->count->phase + 1, done > 0 ? (r->times.start - r->began) / done : -1);
}

static rlhf_status collect(struct rlhf__phase *p, struct rlhf__error *err) {
    struct rlhf__phase_times *times = &p->report->times;
    double from = rlhf__seconds();
    p->x.phase = p->count->phase;
    rlhf_status st = p->feed->ops->next(p->feed, (uint64_t)p->count->sequences,
                                        p->learner->optim->count.step, &p->x, err);
    double drawn = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__phase_score(p, &p->x, 0, err);
    if (st == RLHF_OK && rlhf__cast_has_rewards(p->cast)) st = rlhf__completions_measure(p, err);
    times->rollout = drawn - from;
    times->reward = rlhf__seconds() - drawn;
    if (st == RLHF_OK) st = rlhf__fresh_groups(p, err);
    double complete = rlhf__seconds();
    if (st == RLHF_OK) st = pass_reference(p, err);
    times->reference = rlhf__seconds() - complete;
    return st;
}

// Compute the metrics of the rows that are known before training.
static rlhf_status describe(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__metrics *m = p->report->metrics;
    rlhf__metrics_set(m, "epoch", rlhf__order_epoch(p->feed->ops->order(p->feed)));
    if (!rlhf__cast_has_rewards(p->cast)) {
        rlhf__metrics_set(m, "val/sequence_lengths", (double)e->total / (double)e->n);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__completions_take(p, err));
    return rlhf__judge(p, err);
}

// Evaluate held-out rows if it is time: every data.eval_every phases and after the last one.
static rlhf_status evaluate(struct rlhf__phase *p, struct rlhf__error *err) {
    int64_t every = p->config->data.eval_every, done = p->count->phase + 1;
    int due = (every > 0 && done % every == 0) || done == p->count->phases;
    const struct rlhf__held_out h = {
        .phase = done, .due = due, .metrics = p->report->metrics, .tallies = &p->report->rewards};
    return p->feed->ops->evaluate ? p->feed->ops->evaluate(p->feed, &h, err) : RLHF_OK;
}

static rlhf_status update(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__model *m = p->learner->model;
    struct rlhf__moved moved = {NULL};
    rlhf_status st = rlhf__moved_begin(&moved, m, err);
    if (st == RLHF_OK) st = rlhf__phase_update(p, err);
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
