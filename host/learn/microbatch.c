// microbatch.c: see microbatch.h.
#include "learn/microbatch.h"

#include "batch/row_columns.h"
#include "learn/pass.h"
#include "learn/plan.h"
#include "learn/policy_view.h"
#include "learn/shards.h"

#include <stdlib.h>

// Returns the heads that the model must compute. A reward model gives token scores, which the host
// pools.
static uint32_t model_heads(const struct rlhf__learner *l) {
    uint32_t pooled = l->reward_head ? l->plan.heads & RLHF_HEAD_SCORE : 0;
    return (l->plan.heads & ~pooled) | (pooled ? RLHF_HEAD_TOKEN_SCORE : 0);
}

int rlhf__microbatch_shares(const struct rlhf__learner *l, const struct rlhf__rows *e) {
    return !l->written_out && rlhf__can_share_prompts(l->model, e) &&
           !(model_heads(l) & RLHF_HEAD_SCORE) &&
           (!l->critic || rlhf__can_share_prompts(l->critic, e));
}

rlhf_status rlhf__microbatch_reserve(struct rlhf__learner *l, const struct rlhf__rows *e,
                                     struct rlhf__error *err) {
    uint32_t rows, tokens, heads = l->plan.heads | model_heads(l);
    int share = rlhf__microbatch_shares(l, e);
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

static rlhf_loss_in loss_in(const struct rlhf__learner *l, const struct rlhf__rows *e,
                            uint32_t from) {
    const rlhf_batch *b = &l->batch.full;
    rlhf_loss_in in = {.n = b->n,
                       .total = b->total,
                       .batch_sequences = l->batch_sequences,
                       .batch_tokens = l->batch_tokens,
                       .max_new_tokens = (uint32_t)l->max_new_tokens,
                       .phase = l->phase,
                       .steps = l->optim ? l->optim->count.step : 0,
                       .offset = b->offset,
                       .n_labels = (uint32_t)l->model->n_labels,
                       .minibatches = (uint32_t)l->epoch_minibatches};
    rlhf__columns_to_loss(e, from, rlhf__plan_columns(&l->plan), &in);
    if (e->n_named) in.logp_named = l->named;
    return in;
}

// Copy the reference's hidden states to the compact layout. Only the states of response tokens are
// used, and both layouts contain each of these tokens exactly once.
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

// The two forward passes of a microbatch. The heads of `critic` are 0 if there is only one model.
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
        f->model.kl_self = l->kl_model->self;
        f->model.divergence = l->plan.divergence;
        f->model.divergence_beta = l->plan.divergence_beta;
        st = reference_hidden(l, e, from, &f->model, err);
    }
    rlhf__head_store_clear(&l->out, full->n, full->total, l->model->n_labels);
    rlhf__head_store_clear(&l->grad, full->n, full->total, l->model->n_labels);
    if (l->batch.is_shared) rlhf__head_store_clear(&l->compact, 0, b->total, 0);
    rlhf__shards_want(l, &f->model);
    if (st == RLHF_OK) st = rlhf__model_forward_kept(l->model, b, &f->model, &out->heads, err);
    f->model.wanted = NULL;
    if (st == RLHF_OK) st = rlhf__shards_received(l, err);
    if (st == RLHF_OK && l->critic)
        st = rlhf__model_forward_kept(l->critic, b, &f->critic, &out->heads, err);
    if (st == RLHF_OK && l->batch.is_shared)
        rlhf__shared_heads_expand(&l->batch, &l->out.heads, &l->compact.heads);
    if (st == RLHF_OK && l->reward_head)
        rlhf__reward_pool(l->reward_head, full->n, full->offset, full->prompt_len,
                          l->out.heads.token_score, l->out.heads.score);
    return st;
}

// Run the backward passes. If p->is_last is 1, the policy reports its gradients as they become
// complete.
static rlhf_status backward(struct rlhf__learner *l, struct forwards *f,
                            const struct rlhf__place *p, struct rlhf__error *err) {
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
    if (l->shards) RLHF_TRY(rlhf__shards_meet(l, err));
    if (p->is_last) rlhf__shards_watch(l, &f->model);
    rlhf_status st = rlhf__model_backward(l->model, b, &f->model, &grad, err);
    if (st != RLHF_OK || !l->critic) return st;
    return rlhf__model_backward(l->critic, b, &f->critic, &grad, err);
}

// Count the FLOPs of both models' forward and backward passes. The reference's logits (HEAD_KL)
// have only a forward pass.
static void count_flops(struct rlhf__learner *l, const struct forwards *f) {
    const rlhf_batch *full = &l->batch.full;
    int64_t tokens = l->batch.compact.total;
    const int32_t train = f->model.train;
    l->flops += rlhf__train_ways(l->model, train) *
                rlhf__forward_flops(l->model, f->model.heads, tokens, full);
    if (l->critic)
        l->flops += rlhf__train_ways(l->critic, train) *
                    rlhf__forward_flops(l->critic, f->critic.heads, tokens, full);
    if (f->model.heads & RLHF_HEAD_KL) l->flops += rlhf__lm_head_flops(l->kl_model, full);
}

static int any(const float *x, size_t n) {
    for (size_t i = 0; x && i < n; i++)
        if (x[i] != 0) return 1;
    return 0;
}

// Returns 1 if the loss has a gradient for the policy's trunk. Value derivatives do not count,
// because a new value head has zero weights and passes no gradient to the trunk.
static int any_derivative(const struct rlhf__learner *l) {
    const rlhf_heads *d = &l->grad.heads;
    const rlhf_batch *b = &l->batch.full;
    return any(d->logp, b->total) || any(d->entropy, b->total) || any(d->kl, b->total) ||
           any(d->score, (size_t)b->n * (size_t)l->model->n_labels);
}

// Add up, over tokens, the reference's log-prob minus the policy's, both computed before the
// update. Only the wanted responses of a file (label 1) are measured. A token that the policy did
// not write adds 0, because both models' log-probs are 0 for it.
static void measure_fall(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t from,
                         const rlhf_loss_in *in) {
    if (!in->logp_ref || !in->heads->logp || (e->flags & RLHF__DRAWN)) return;
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->label[i] != 1) continue;
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++)
            l->fall_sum += (double)in->logp_ref[t] - (double)in->heads->logp[t];
        l->fall_tokens += rlhf__rows_response_tokens(e, from + i, from + i + 1);
    }
}

rlhf_status rlhf__microbatch(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t from,
                             uint32_t to, struct rlhf__place *p, struct rlhf__error *err) {
    struct forwards f;
    rlhf_status st =
        rlhf__shared_batch_fill(&l->batch, e, from, to, rlhf__microbatch_shares(l, e), err);
    if (st == RLHF_OK) st = forward(l, e, from, p->train, &f, err);
    if (st != RLHF_OK) return st;
    l->tokens += l->batch.compact.total;
    if (l->comparing)
        rlhf__learner_compare(l, e, from, to, e->token[RLHF__LOGP_OLD] + e->offset[from],
                              l->out.heads.logp);
    if (p->only_compares) return RLHF_OK;
    for (uint32_t k = 0; k < e->n_named; k++)
        l->named[k] = e->named[k] + e->offset[from];
    rlhf_loss_in in = loss_in(l, e, from);
    in.epoch = p->epoch;
    in.minibatch = p->minibatch;
    in.shard = p->shard;
    const rlhf_head_values heads = rlhf__head_store_values(&l->out);
    rlhf_head_gradients d_heads = rlhf__head_store_gradients(&l->grad);
    rlhf_loss_out out = {.d_heads = &d_heads};
    in.heads = &heads;
    measure_fall(l, e, from, &in);
    st = rlhf__view_loss(&l->objective, e, from, to, &in, &out, err);
    if (st != RLHF_OK) return st;
    rlhf__prompts_clear(&in, &d_heads);
    RLHF_TRY(rlhf__row_use_check(&d_heads, e, from, to, l->objective.name, err));
    rlhf__odd_loss_find(&in, &out, &l->odd_loss);
    p->loss += out.loss;
    if (p->train) l->asked |= any_derivative(l);
    count_flops(l, &f);
    return p->train ? backward(l, &f, p, err) : RLHF_OK;
}
