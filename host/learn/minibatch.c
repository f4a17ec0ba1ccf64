// minibatch.c: see minibatch.h.
#include "learn/minibatch.h"

#include "base/clock.h"
#include "learn/microbatch.h"
#include "learn/shards.h"
#include "model/compute.h"

#include <math.h>
#include <stdlib.h>

// Returns the divisor of a loss: the number of response tokens in the loss, without those of
// excluded rows.
static int64_t unmasked_tokens(const struct rlhf__rows *e) {
    int64_t tokens = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->use[i] != RLHF_USE_EXCLUDED) tokens += rlhf__rows_loss_tokens(e, i, i + 1);
    return tokens;
}

// List the rows of e that run as rows with this use (enum rlhf_row_use), in order, and return how
// many they are. If groups must stay together, a row without a gradient runs with the rows of its
// group that train. `pick` may be NULL.
static uint32_t rows_that_run(const struct rlhf__rows *e, int use, uint32_t *pick) {
    const int whole = (e->flags & RLHF__WHOLE_GROUPS) != 0;
    uint32_t n = 0;
    for (uint32_t i = 0, end; i < e->n; i = end) {
        int trains = 0;
        end = whole ? rlhf__rows_group_end(e, i) : i + 1;
        for (uint32_t k = i; k < end; k++)
            trains |= e->use[k] == RLHF_USE_TRAINS;
        for (uint32_t k = i; k < end; k++) {
            const int moved = trains && e->use[k] == RLHF_USE_NO_GRADIENT;
            if ((moved ? RLHF_USE_TRAINS : e->use[k]) != use) continue;
            if (pick) pick[n] = k;
            n++;
        }
    }
    return n;
}

// Copy the rows of e that run as rows with this use to *part.
static rlhf_status pick_use(const struct rlhf__rows *e, int use, struct rlhf__rows *part,
                            struct rlhf__error *err) {
    uint32_t *pick = calloc((size_t)e->n + 1, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    const uint32_t n = rows_that_run(e, use, pick);
    rlhf_status st = rlhf__rows_pick(part, e, pick, n, err);
    free(pick);
    return st;
}

// Run the rows in microbatches.
static rlhf_status all_rows(struct rlhf__learner *l, const struct rlhf__rows *e,
                            struct rlhf__place *p, struct rlhf__error *err) {
    rlhf_status st = rlhf__microbatch_reserve(l, e, err);
    for (uint32_t from = 0, to; st == RLHF_OK && from < e->n; from = to) {
        to = rlhf__rows_slice_end(e, from, l->microbatch_tokens, rlhf__microbatch_shares(l, e));
        p->is_last = p->train && to == e->n;
        if (l->abandons && *l->abandons)
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped between two microbatches");
        st = rlhf__microbatch(l, e, from, to, p, err);
        rlhf__watch_seen(l->watch, "update", l->rows + to, l->rows_all);
    }
    l->rows += e->n;
    return st;
}

// Run the rows, shard by shard if there are shards.
static rlhf_status run_rows(struct rlhf__learner *l, const struct rlhf__rows *e,
                            struct rlhf__place *p, struct rlhf__error *err) {
    if (!l->shards) return all_rows(l, e, p, err);
    return rlhf__shards_rows(l, e, rlhf__microbatch_shares(l, e), p, all_rows, err);
}

// Run the rows of e that run as rows with this use (enum rlhf_row_use). Waits for the device, so
// that the measured time is the time of exactly these rows.
static rlhf_status rows_of(struct rlhf__learner *l, const struct rlhf__rows *e, int use,
                           struct rlhf__place *p, struct rlhf__error *err) {
    const rlhf_compute *t = l->model->compute;
    const double from = rlhf__seconds();
    struct rlhf__rows part = {0};
    rlhf_status st = pick_use(e, use, &part, err);
    p->train = use == RLHF_USE_TRAINS;
    if (st == RLHF_OK) st = run_rows(l, &part, p, err);
    if (st == RLHF_OK) {
        st = t->sync(t->ctx);
        if (st != RLHF_OK)
            st = rlhf__compute_fail(rlhf__model_kernels(l->model), st, "gradients", err);
    }
    l->tally.seconds[use] += rlhf__seconds() - from;
    if (p->train) l->tally.timed += rlhf__rows_response_tokens(&part, 0, part.n);
    rlhf__rows_finish(&part);
    return st;
}

// Called if all rows of a phase's first minibatch are excluded. Compares the rows' log-probs from
// sampling with those of a forward pass without a loss. This must be done now, because the step
// that follows changes the weights that sampled the rows.
static rlhf_status compare_masked(struct rlhf__learner *l, const struct rlhf__rows *e,
                                  struct rlhf__place *p, struct rlhf__error *err) {
    const struct rlhf__rows none = {0};
    if (l->shards) RLHF_TRY(run_rows(l, &none, p, err)); // adds only gradients of 0
    p->train = 0;
    p->only_compares = 1;
    return run_rows(l, e, p, err);
}

// Compute the gradients of all rows. *loss receives the algorithm's loss.
static rlhf_status gradients(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t epoch,
                             uint32_t minibatch, double *loss, struct rlhf__error *err) {
    struct rlhf__place p = {.epoch = epoch, .minibatch = minibatch, .train = 1};
    const uint32_t train = rows_that_run(e, RLHF_USE_TRAINS, NULL);
    const uint32_t masked = rlhf__row_use_count(e, RLHF_USE_EXCLUDED);
    rlhf_status st = RLHF_OK;
    const int64_t first = l->rows;
    l->batch_sequences = e->n;
    l->batch_tokens = unmasked_tokens(e);
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->label[i] < 0) continue; // mismatched: only measured, not trained on
        l->tally.rows[e->use[i]]++;
        l->tally.tokens[e->use[i]] += rlhf__rows_response_tokens(e, i, i + 1);
    }
    if (l->shards) rlhf__shards_begin(l, e);
    if (train == e->n) {
        st = run_rows(l, e, &p, err);
    } else if (masked == e->n && l->comparing) {
        st = compare_masked(l, e, &p, err);
    } else {
        l->rows += masked;
        st = rows_of(l, e, RLHF_USE_TRAINS, &p, err);
        if (st == RLHF_OK) st = rows_of(l, e, RLHF_USE_NO_GRADIENT, &p, err);
    }
    if (l->shards) {
        st = rlhf__shards_end(l, e, &p, st, err);
        l->rows = first + e->n; // including the rows of other processes
    }
    *loss = p.loss;
    return st;
}

// Sets *late to 1 if the policy's new values must still be received, otherwise to 0.
static rlhf_status step(struct rlhf__learner *l, double loss, double lr_factor, int *late,
                        struct rlhf__error *err) {
    struct rlhf__optim_report r, rc = {.skipped = 1};
    l->last_loss = loss;
    *late = rlhf__shards_plan_late(l);
    rlhf_status st = rlhf__optim_step(l->optim, lr_factor, isfinite(loss), &r, err);
    if (st == RLHF_OK && l->critic)
        st = rlhf__optim_step(l->critic_optim, lr_factor, isfinite(loss), &rc, err);
    if (st == RLHF_OK && !rc.skipped) st = rlhf__model_refresh(l->critic, err);
    if (st != RLHF_OK) return st;
    l->last = r;
    l->comparing = 0;
    l->minibatches++;
    l->loss_sum += loss;
    *late = *late && !r.skipped;
    if (r.skipped) return RLHF_OK; // the weights have not changed
    if (l->norm_first == 0) l->norm_first = r.grad_norm;
    if (r.grad_norm > l->norm_max) l->norm_max = r.grad_norm;
    l->steps++;
    l->norm_sum += r.grad_norm;
    l->clipped_sum += r.grad_norm_clipped;
    return *late ? RLHF_OK : rlhf__model_refresh(l->model, err);
}

static rlhf_status tell(const struct rlhf__learner *l, uint32_t epoch, uint32_t minibatch,
                        double lr_factor, int32_t *stop, struct rlhf__error *err) {
    rlhf_step_info info = {.epoch = epoch,
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

rlhf_status rlhf__minibatch(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t epoch,
                            uint32_t minibatch, double lr_factor, int32_t *stop,
                            struct rlhf__error *err) {
    double loss;
    int late;
    *stop = 0;
    RLHF_TRY(gradients(l, e, epoch, minibatch, &loss, err));
    rlhf_status st = step(l, loss, lr_factor, &late, err);
    if (st == RLHF_OK) st = tell(l, epoch, minibatch, lr_factor, stop, err);
    if (!late) return st;
    // Exchange the values even if this process has failed, because the other processes wait for
    // them.
    struct rlhf__error unsaid;
    const rlhf_status renewed =
        rlhf__shards_renew(l, st != RLHF_OK || *stop, st == RLHF_OK ? err : &unsaid);
    return st == RLHF_OK ? renewed : st;
}
