// learner.c: see learner.h.
#include "learn/learner.h"

#include "base/clock.h"
#include "learn/microbatch.h"
#include "model/compute.h"

#include <math.h>
#include <stdlib.h>

int rlhf__plan_wants_reference(const rlhf_plan *plan) {
    return (plan->flags & RLHF_PLAN_REFERENCE) || (plan->heads & RLHF_HEAD_KL);
}

void rlhf__learner_finish(struct rlhf__learner *l) {
    rlhf__head_store_finish(&l->out);
    rlhf__head_store_finish(&l->grad);
    rlhf__head_store_finish(&l->compact);
    rlhf__shared_batch_finish(&l->batch);
    free(l->hidden);
    l->hidden = NULL;
    l->hidden_cap = 0;
}

void rlhf__learner_begin(struct rlhf__learner *l) {
    l->loss_sum = l->norm_sum = l->clipped_sum = 0;
    l->norm_first = l->norm_max = 0;
    l->minibatches = l->steps = l->tokens = l->compared = 0;
    l->asked = 0;
    l->fall_sum = 0;
    l->fall_tokens = 0;
    l->flops = l->difference_sum = l->difference_max = 0;
    l->tally = (struct rlhf__row_tally){0};
}

void rlhf__learner_expect(struct rlhf__learner *l, uint32_t minibatches, int64_t rows,
                          int compare) {
    l->epoch_minibatches = minibatches;
    l->rows = 0;
    l->rows_all = rows;
    l->comparing = compare;
}

void rlhf__learner_compare(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t from,
                           uint32_t to, const float *sampled, const float *again) {
    int32_t base = e->offset[from];
    for (uint32_t i = from; i < to; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++) {
            double d = fabs((double)sampled[k - base] - (double)again[k - base]);
            l->difference_sum += d;
            if (d > l->difference_max || isnan(d)) l->difference_max = d;
            l->compared++;
        }
}

// Process rows in microbatches.
static rlhf_status all_rows(struct rlhf__learner *l, const struct rlhf__rows *e,
                            struct rlhf__place *p, struct rlhf__error *err) {
    rlhf_status st = rlhf__microbatch_reserve(l, e, err);
    for (uint32_t from = 0, to; st == RLHF_OK && from < e->n; from = to) {
        to = rlhf__rows_slice_end(e, from, l->microbatch_tokens, rlhf__microbatch_shares(l, e));
        st = rlhf__microbatch(l, e, from, to, p, err);
        rlhf__watch_seen(l->watch, "update", l->rows + to, l->rows_all);
    }
    l->rows += e->n;
    return st;
}

// Process the rows of e with this use. The device is synchronised, so that the time is that of
// these rows.
static rlhf_status rows_of(struct rlhf__learner *l, const struct rlhf__rows *e, int use,
                           struct rlhf__place *p, struct rlhf__error *err) {
    const rlhf_compute *t = l->model->compute;
    const double from = rlhf__seconds();
    struct rlhf__rows part = {0};
    rlhf_status st = rlhf__row_use_pick(e, use, &part, err);
    p->train = use == RLHF_ROW_TRAINS;
    if (st == RLHF_OK) st = all_rows(l, &part, p, err);
    if (st == RLHF_OK) {
        st = t->sync(t->ctx);
        if (st != RLHF_OK) st = rlhf__compute_fail(t, st, "gradients", err);
    }
    l->tally.seconds[use] += rlhf__seconds() - from;
    if (p->train) l->tally.timed += rlhf__rows_response_tokens(&part, 0, part.n);
    rlhf__rows_finish(&part);
    return st;
}

// All rows of the phase's first minibatch are masked. The weights are still those that sampled, so
// compare by a forward pass alone, before the step changes them.
static rlhf_status compare_masked(struct rlhf__learner *l, const struct rlhf__rows *e,
                                  struct rlhf__place *p, struct rlhf__error *err) {
    p->train = 0;
    p->only_compares = 1;
    return all_rows(l, e, p, err);
}

// Gradients of all rows; *loss = the algorithm's loss.
static rlhf_status gradients(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t epoch,
                             uint32_t minibatch, double *loss, struct rlhf__error *err) {
    struct rlhf__place p = {.epoch = epoch, .minibatch = minibatch, .train = 1};
    const uint32_t train = rlhf__row_use_count(e, RLHF_ROW_TRAINS);
    const uint32_t masked = rlhf__row_use_count(e, RLHF_ROW_EXCLUDED);
    rlhf_status st = RLHF_OK;
    l->batch_sequences = e->n;
    l->batch_tokens = rlhf__row_use_tokens(e);
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->label[i] < 0) continue; // mismatched: for a measurement, not for the update
        l->tally.rows[e->use[i]]++;
        l->tally.tokens[e->use[i]] += rlhf__rows_response_tokens(e, i, i + 1);
    }
    if (train == e->n) {
        st = all_rows(l, e, &p, err);
    } else if (masked == e->n && l->comparing) {
        st = compare_masked(l, e, &p, err);
    } else {
        l->rows += masked;
        st = rows_of(l, e, RLHF_ROW_TRAINS, &p, err);
        if (st == RLHF_OK) st = rows_of(l, e, RLHF_ROW_NO_GRADIENT, &p, err);
    }
    *loss = p.loss;
    return st;
}

static rlhf_status step(struct rlhf__learner *l, double loss, double lr_factor,
                        struct rlhf__error *err) {
    struct rlhf__optim_report r, rc = {.skipped = 1};
    l->last_loss = loss;
    rlhf_status st = rlhf__optim_step(l->optim, lr_factor, isfinite(loss), &r, err);
    if (st == RLHF_OK && l->critic)
        st = rlhf__optim_step(l->critic_optim, lr_factor, isfinite(loss), &rc, err);
    if (st == RLHF_OK && !rc.skipped) st = rlhf__model_refresh(l->critic, err);
    if (st != RLHF_OK) return st;
    l->last = r;
    l->comparing = 0;
    l->minibatches++;
    l->loss_sum += loss;
    if (r.skipped) return RLHF_OK; // the weights have not changed
    if (l->norm_first == 0) l->norm_first = r.grad_norm;
    if (r.grad_norm > l->norm_max) l->norm_max = r.grad_norm;
    l->steps++;
    l->norm_sum += r.grad_norm;
    l->clipped_sum += r.grad_norm_clipped;
    return rlhf__model_refresh(l->model, err);
}

static rlhf_status tell(const struct rlhf__learner *l, uint32_t epoch, uint32_t minibatch,
                        double lr_factor, int32_t *stop, struct rlhf__error *err) {
    rlhf_step_info info = {.size = sizeof info,
                           .epoch = epoch,
                           .minibatch = minibatch,
                           .skipped = l->last.skipped != 0,
                           .phase = l->phase,
                           .loss = l->last_loss,
                           .grad_norm = l->last.grad_norm,
                           .grad_norm_clipped = l->last.grad_norm_clipped,
                           .lr = l->optim->config.lr * lr_factor,
                           .lr_factor = lr_factor,
                           .steps = l->optim->count.step};
    if (!l->objective.stepped) return RLHF_OK;
    return l->objective.stepped(l->objective.self, &info, stop, err);
}

rlhf_status rlhf__learner_minibatch(struct rlhf__learner *l, const struct rlhf__rows *e,
                                    uint32_t epoch, uint32_t minibatch, double lr_factor,
                                    int32_t *stop, struct rlhf__error *err) {
    double loss;
    *stop = 0;
    RLHF_TRY(gradients(l, e, epoch, minibatch, &loss, err));
    RLHF_TRY(step(l, loss, lr_factor, err));
    return tell(l, epoch, minibatch, lr_factor, stop, err);
}
