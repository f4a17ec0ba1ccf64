// learner.c: see learner.h.
#include "learn/learner.h"

#include "base/clock.h"
#include "learn/flops.h"
#include "learn/pass.h"
#include "model/compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    l->minibatches = l->steps = l->tokens = l->compared = 0;
    l->asked = 0;
    l->flops = l->difference_sum = l->difference_max = 0;
    l->books = (struct rlhf__row_books){0};
}

void rlhf__learner_expect(struct rlhf__learner *l, uint32_t minibatches, int64_t rows,
                          int compare) {
    l->epoch_minibatches = minibatches;
    l->rows = 0;
    l->rows_all = rows;
    l->comparing = compare;
}

// What the model is asked for: a reward model gives a score a token, which the host pools.
static uint32_t model_heads(const struct rlhf__learner *l) {
    uint32_t pooled = l->reward_head ? l->plan.heads & RLHF_HEAD_SCORE : 0;
    return (l->plan.heads & ~pooled) | (pooled ? RLHF_HEAD_TOKEN_SCORE : 0);
}

static int learner_shares(const struct rlhf__learner *l, const struct rlhf__rows *e) {
    return !l->written_out && rlhf__can_share_prompts(l->model, e) &&
           !(model_heads(l) & RLHF_HEAD_SCORE) &&
           (!l->critic || rlhf__can_share_prompts(l->critic, e));
}

static rlhf_status reserve(struct rlhf__learner *l, const struct rlhf__rows *e,
                           struct rlhf__error *err) {
    uint32_t rows, tokens, heads = l->plan.heads | model_heads(l);
    int share = learner_shares(l, e);
    rlhf__rows_largest_slice(e, l->microbatch_tokens, share, &rows, &tokens);
    rlhf_status st =
        rlhf__head_store_reserve(&l->out, heads, rows, tokens, l->model->n_labels, err);
    if (st == RLHF_OK)
        st = rlhf__head_store_reserve(&l->grad, heads, rows, tokens, l->model->n_labels, err);
    if (st == RLHF_OK && share)
        st = rlhf__head_store_reserve(&l->compact, model_heads(l), rows, tokens, l->model->n_labels,
                                      err);
    return st;
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

static rlhf_loss_in loss_in(const struct rlhf__learner *l, const struct rlhf__rows *e,
                            uint32_t from) {
    int32_t base = e->offset[from];
    const rlhf_batch *b = &l->batch.full;
    rlhf_loss_in in = {.size = sizeof in,
                       .n = b->n,
                       .total = b->total,
                       .batch_sequences = l->batch_sequences,
                       .batch_tokens = l->batch_tokens,
                       .max_new_tokens = l->max_new_tokens,
                       .offset = b->offset,
                       .prompt_len = b->prompt_len,
                       .group = e->group + from,
                       .heads = &l->out.heads,
                       .logp_old = e->token[RLHF__LOGP_OLD] + base,
                       .logp_ref = e->token[RLHF__LOGP_REF] + base,
                       .value_old = e->token[RLHF__VALUE_OLD] + base,
                       .advantage = e->token[RLHF__ADVANTAGE] + base,
                       .returns = e->token[RLHF__RETURNS] + base,
                       .label = e->label + from,
                       .n_labels = l->model->n_labels,
                       .minibatches = l->epoch_minibatches};
    in.ids = b->ids;
    if (e->left_out) in.left_out = e->left_out + base;
    if (e->flags & RLHF__DRAWN) {
        in.logp_sampled = e->token[RLHF__LOGP_SAMPLED] + base;
        in.version = e->version + from;
        in.steps = l->optim->count.step;
    }
    if (!rlhf__plan_wants_reference(&l->plan)) in.logp_ref = NULL;
    if (!(l->plan.heads & RLHF_HEAD_VALUE)) in.value_old = NULL;
    return in;
}

// The reference's hidden states in the layout that the model computes. Those of response tokens are
// the same in both.
static rlhf_status reference_hidden(struct rlhf__learner *l, const struct rlhf__rows *e,
                                    uint32_t from, rlhf_forward *f, struct rlhf__error *err) {
    if (e->ref_row) {
        f->kl_dev_hidden = e->ref_dev_hidden;
        f->kl_dev_row = e->ref_row + rlhf__rows_response_tokens(e, 0, from);
        return RLHF_OK;
    }
    size_t d = (size_t)e->d_hidden, need = (size_t)l->batch.compact.total * d;
    const float *full = e->ref_hidden + (size_t)e->offset[from] * d;
    f->kl_hidden = full;
    if (!l->batch.is_shared) return RLHF_OK;
    if (need > l->hidden_cap) {
        free(l->hidden);
        l->hidden = malloc(need * sizeof *l->hidden);
        l->hidden_cap = l->hidden ? need : 0;
        if (!l->hidden) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for hidden states");
    }
    rlhf__shared_batch_contract(&l->batch, l->hidden, full, e->d_hidden);
    f->kl_hidden = l->hidden;
    return RLHF_OK;
}

// The two forwards of a microbatch; critic's heads are 0 without one.
struct forwards {
    rlhf_forward model, critic;
};

static rlhf_status forward(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t from,
                           int train, struct forwards *f, struct rlhf__error *err) {
    const rlhf_batch *b = &l->batch.compact;
    const rlhf_batch *full = &l->batch.full;
    struct rlhf__head_store *out = l->batch.is_shared ? &l->compact : &l->out;
    f->model = (rlhf_forward){
        .size = sizeof f->model, .heads = model_heads(l), .train = train, .dist = &l->dist};
    f->model.support = rlhf__rows_support(e, from);
    f->critic = f->model;
    f->critic.heads = RLHF_HEAD_VALUE;
    if (l->critic) f->model.heads &= ~(uint32_t)RLHF_HEAD_VALUE;
    rlhf_status st = RLHF_OK;
    if (l->plan.heads & RLHF_HEAD_KL) {
        f->model.kl_self = l->reference->self;
        st = reference_hidden(l, e, from, &f->model, err);
    }
    rlhf__head_store_clear(&l->out, full->n, full->total, l->model->n_labels);
    rlhf__head_store_clear(&l->grad, full->n, full->total, l->model->n_labels);
    if (l->batch.is_shared) rlhf__head_store_clear(&l->compact, 0, b->total, 0);
    if (st == RLHF_OK) st = rlhf__model_forward(l->model, b, &f->model, &out->heads, err);
    if (st == RLHF_OK && l->critic)
        st = rlhf__model_forward(l->critic, b, &f->critic, &out->heads, err);
    if (st == RLHF_OK && l->batch.is_shared)
        rlhf__shared_heads_expand(&l->batch, &l->out.heads, &l->compact.heads);
    if (st == RLHF_OK && l->reward_head)
        rlhf__reward_pool(l->reward_head, full->n, full->offset, full->prompt_len,
                          l->out.heads.token_score, l->out.heads.score);
    return st;
}

static rlhf_status backward(struct rlhf__learner *l, const struct forwards *f,
                            struct rlhf__error *err) {
    const rlhf_batch *b = &l->batch.compact, *full = &l->batch.full;
    rlhf_heads grad = l->grad.heads;
    if (l->reward_head) {
        rlhf__reward_pool_bwd(l->reward_head, full->n, full->offset, full->prompt_len, grad.score,
                              grad.token_score);
        grad.score = NULL;
    }
    if (l->batch.is_shared) {
        rlhf__shared_heads_contract(&l->batch, &l->compact.heads, &grad);
        grad = l->compact.heads;
    }
    rlhf_status st = rlhf__model_backward(l->model, b, &f->model, &grad, err);
    if (st != RLHF_OK || !l->critic) return st;
    return rlhf__model_backward(l->critic, b, &f->critic, &grad, err);
}

// Forward and backward of both models; the reference's logits (HEAD_KL) have no backward.
static void count_flops(struct rlhf__learner *l, const struct forwards *f) {
    const rlhf_batch *full = &l->batch.full;
    int64_t tokens = l->batch.compact.total;
    const int32_t train = f->model.train;
    l->flops += rlhf__train_ways(l->model, train) *
                rlhf__forward_flops(l->model, f->model.heads, tokens, full);
    if (l->critic)
        l->flops += rlhf__train_ways(l->critic, train) *
                    rlhf__forward_flops(l->critic, f->critic.heads, tokens, full);
    if (f->model.heads & RLHF_HEAD_KL) l->flops += rlhf__lm_head_flops(l->reference, full);
}

// Where a minibatch is in its phase, and what its rows come to.
struct place {
    uint32_t epoch, minibatch;
    int train; // 0: the rows are still
    int reserved;
    double loss; // so far
};

static int any(const float *x, size_t n) {
    for (size_t i = 0; x && i < n; i++)
        if (x[i] != 0) return 1;
    return 0;
}

// Whether the loss wants the policy's trunk to be another. What it wants of values is left out: a
// fresh value head passes nothing on.
static int any_derivative(const struct rlhf__learner *l) {
    const rlhf_heads *d = &l->grad.heads;
    const rlhf_batch *b = &l->batch.full;
    return any(d->logp, b->total) || any(d->entropy, b->total) || any(d->kl, b->total) ||
           any(d->score, (size_t)b->n * (size_t)l->model->n_labels);
}

static rlhf_status microbatch(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t from,
                              uint32_t to, struct place *p, struct rlhf__error *err) {
    struct forwards f;
    rlhf_status st = rlhf__shared_batch_fill(&l->batch, e, from, to, learner_shares(l, e), err);
    if (st == RLHF_OK) st = forward(l, e, from, p->train, &f, err);
    if (st != RLHF_OK) return st;
    l->tokens += l->batch.compact.total;
    if (l->comparing)
        rlhf__learner_compare(l, e, from, to, e->token[RLHF__LOGP_OLD] + e->offset[from],
                              l->out.heads.logp);
    rlhf_loss_in in = loss_in(l, e, from);
    in.epoch = p->epoch;
    in.minibatch = p->minibatch;
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &l->grad.heads};
    st = l->objective.loss(l->objective.self, &in, &out, err);
    if (st != RLHF_OK) return st;
    p->loss += out.loss;
    if (p->train) l->asked |= any_derivative(l);
    count_flops(l, &f);
    if (p->train) return backward(l, &f, err);
    return rlhf__row_use_check(&l->grad.heads, l->batch.full.total, err);
}

// Rows in microbatches.
static rlhf_status all_rows(struct rlhf__learner *l, const struct rlhf__rows *e, struct place *p,
                            struct rlhf__error *err) {
    rlhf_status st = reserve(l, e, err);
    for (uint32_t from = 0, to; st == RLHF_OK && from < e->n; from = to) {
        to = rlhf__rows_slice_end(e, from, l->microbatch_tokens, learner_shares(l, e));
        st = microbatch(l, e, from, to, p, err);
        rlhf__watch_seen(l->watch, "update", l->rows + to, l->rows_all);
    }
    l->rows += e->n;
    return st;
}

// The rows of e that are used so. The device is waited for, so that the time is that of the rows.
static rlhf_status rows_of(struct rlhf__learner *l, const struct rlhf__rows *e, int use,
                           struct place *p, struct rlhf__error *err) {
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
    l->books.seconds[use] += rlhf__seconds() - from;
    if (p->train) l->books.timed += rlhf__rows_response_tokens(&part, 0, part.n);
    rlhf__rows_finish(&part);
    return st;
}

// Gradients of all rows; *loss = what the algorithm says of them.
static rlhf_status gradients(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t epoch,
                             uint32_t minibatch, double *loss, struct rlhf__error *err) {
    struct place p = {.epoch = epoch, .minibatch = minibatch, .train = 1};
    const uint32_t train = rlhf__row_use_count(e, RLHF_ROW_TRAINS);
    rlhf_status st = RLHF_OK;
    l->batch_sequences = e->n;
    l->batch_tokens = rlhf__row_use_tokens(e);
    for (uint32_t i = 0; i < e->n; i++) {
        l->books.rows[e->use[i]]++;
        l->books.tokens[e->use[i]] += rlhf__rows_response_tokens(e, i, i + 1);
    }
    if (train == e->n) {
        st = all_rows(l, e, &p, err);
    } else {
        l->rows += rlhf__row_use_count(e, RLHF_ROW_MASKED);
        st = rows_of(l, e, RLHF_ROW_TRAINS, &p, err);
        if (st == RLHF_OK) st = rows_of(l, e, RLHF_ROW_STILL, &p, err);
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
    if (r.skipped) return RLHF_OK; // the weights are what they were
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
                           .skipped = l->last.skipped,
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
