// learner.c: see learner.h.
#include "train/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int grow(float **p, size_t n, int wanted) {
    if (!wanted) return 1;
    float *q = realloc(*p, (n ? n : 1) * sizeof *q);
    if (!q) return 0;
    *p = q;
    return 1;
}

// Room for `rows` and `tokens` in every planned head.
static rlhf_status store_reserve(struct rlhf__head_store *s, uint32_t heads, size_t rows,
                                 size_t tokens, int32_t n_labels, struct rlhf__error *err) {
    s->heads.size = sizeof s->heads;
    if (s->tokens >= tokens && s->rows >= rows) return RLHF_OK;
    if (tokens < s->tokens) tokens = s->tokens;
    if (rows < s->rows) rows = s->rows;
    if (!grow(&s->heads.logp, tokens, heads & RLHF_HEAD_LOGP) ||
        !grow(&s->heads.entropy, tokens, heads & RLHF_HEAD_ENTROPY) ||
        !grow(&s->heads.kl, tokens, heads & RLHF_HEAD_KL) ||
        !grow(&s->heads.value, tokens, heads & RLHF_HEAD_VALUE) ||
        !grow(&s->heads.score, rows * (size_t)n_labels, heads & RLHF_HEAD_SCORE))
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu tokens", tokens);
    s->tokens = tokens;
    s->rows = rows;
    return RLHF_OK;
}

static void store_clear(struct rlhf__head_store *s, size_t rows, size_t tokens, int32_t n_labels) {
    if (s->heads.logp) memset(s->heads.logp, 0, tokens * sizeof(float));
    if (s->heads.entropy) memset(s->heads.entropy, 0, tokens * sizeof(float));
    if (s->heads.kl) memset(s->heads.kl, 0, tokens * sizeof(float));
    if (s->heads.value) memset(s->heads.value, 0, tokens * sizeof(float));
    if (s->heads.score) memset(s->heads.score, 0, rows * (size_t)n_labels * sizeof(float));
}

static void store_finish(struct rlhf__head_store *s) {
    free(s->heads.logp);
    free(s->heads.entropy);
    free(s->heads.kl);
    free(s->heads.value);
    free(s->heads.score);
    memset(s, 0, sizeof *s);
}

void rlhf__learner_finish(struct rlhf__learner *l) {
    store_finish(&l->out);
    store_finish(&l->grad);
    free(l->offset);
    l->offset = NULL;
    l->offset_cap = 0;
}

static rlhf_status reserve(struct rlhf__learner *l, const struct rlhf__episodes *e,
                           struct rlhf__error *err) {
    uint32_t rows, tokens;
    rlhf__episodes_largest_slice(e, l->microbatch_tokens, &rows, &tokens);
    uint32_t heads = l->plan.heads;
    rlhf_status st = store_reserve(&l->out, heads, rows, tokens, l->model->n_labels, err);
    if (st == RLHF_OK) st = store_reserve(&l->grad, heads, rows, tokens, l->model->n_labels, err);
    if (st != RLHF_OK || l->offset_cap >= rows + 1u) return st;
    free(l->offset);
    l->offset = calloc(rows + 1u, sizeof *l->offset);
    l->offset_cap = l->offset ? rows + 1u : 0;
    return l->offset ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %u rows", rows);
}

void rlhf__learner_compare(struct rlhf__learner *l, const struct rlhf__episodes *e, uint32_t from,
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

static rlhf_loss_in loss_in(const struct rlhf__learner *l, const struct rlhf__episodes *e,
                            const rlhf_batch *b, uint32_t from) {
    int32_t base = e->offset[from];
    rlhf_loss_in in = {.size = sizeof in,
                       .n = b->n,
                       .total = b->total,
                       .batch_sequences = e->n,
                       .batch_tokens = rlhf__episodes_response_tokens(e, 0, e->n),
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
                       .n_labels = l->model->n_labels};
    if (!(l->plan.flags & RLHF_PLAN_REFERENCE)) in.logp_ref = NULL;
    if (!(l->plan.heads & RLHF_HEAD_VALUE)) in.value_old = NULL;
    return in;
}

static rlhf_status microbatch(struct rlhf__learner *l, const struct rlhf__episodes *e,
                              uint32_t from, uint32_t to, uint32_t epoch, uint32_t minibatch,
                              double *loss, struct rlhf__error *err) {
    rlhf_batch b = rlhf__episodes_batch(e, from, to, l->offset);
    rlhf_forward f = {.size = sizeof f, .heads = l->plan.heads, .train = 1, .dist = &l->dist};
    rlhf_forward fc = {.size = sizeof fc, .heads = RLHF_HEAD_VALUE, .train = 1, .dist = &l->dist};
    if (l->critic) f.heads &= ~(uint32_t)RLHF_HEAD_VALUE;
    if (l->plan.heads & RLHF_HEAD_KL) {
        f.kl_self = l->reference->self;
        f.kl_hidden = e->ref_hidden + (size_t)e->offset[from] * (size_t)e->d_hidden;
    }
    store_clear(&l->out, b.n, b.total, l->model->n_labels);
    store_clear(&l->grad, b.n, b.total, l->model->n_labels);
    rlhf_status st = rlhf__model_forward(l->model, &b, &f, &l->out.heads, err);
    if (st == RLHF_OK && l->critic)
        st = rlhf__model_forward(l->critic, &b, &fc, &l->out.heads, err);
    if (st != RLHF_OK) return st;
    if (l->comparing)
        rlhf__learner_compare(l, e, from, to, e->token[RLHF__LOGP_OLD] + e->offset[from],
                              l->out.heads.logp);
    rlhf_loss_in in = loss_in(l, e, &b, from);
    in.epoch = epoch;
    in.minibatch = minibatch;
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &l->grad.heads};
    st = l->algo->plugin->ops.algo.loss(l->algo->self, &in, &out);
    if (st < 0) return rlhf__plugin_call_failed(l->algo, "loss()", st, err);
    *loss += out.loss;
    st = rlhf__model_backward(l->model, &b, &f, &l->grad.heads, err);
    if (st != RLHF_OK || !l->critic) return st;
    return rlhf__model_backward(l->critic, &b, &fc, &l->grad.heads, err);
}

rlhf_status rlhf__learner_minibatch(struct rlhf__learner *l, const struct rlhf__episodes *e,
                                    uint32_t epoch, uint32_t minibatch, double lr_factor,
                                    struct rlhf__error *err) {
    rlhf_status st = reserve(l, e, err);
    double loss = 0;
    for (uint32_t from = 0, to; st == RLHF_OK && from < e->n; from = to) {
        to = rlhf__episodes_slice_end(e, from, l->microbatch_tokens);
        st = microbatch(l, e, from, to, epoch, minibatch, &loss, err);
    }
    if (st != RLHF_OK) return st;
    struct rlhf__optim_report r, rc = {.skipped = 1};
    st = rlhf__optim_step(l->optim, lr_factor, isfinite(loss), &r, err);
    if (st == RLHF_OK && l->critic)
        st = rlhf__optim_step(l->critic_optim, lr_factor, isfinite(loss), &rc, err);
    if (st == RLHF_OK && !rc.skipped) st = rlhf__model_refresh(l->critic, err);
    if (st != RLHF_OK) return st;
    l->comparing = 0;
    l->minibatches++;
    l->tokens += e->total;
    l->loss_sum += loss;
    if (r.skipped) return RLHF_OK; // the weights are what they were
    l->steps++;
    l->norm_sum += r.grad_norm;
    l->clipped_sum += r.grad_norm_clipped;
    return rlhf__model_refresh(l->model, err);
}

rlhf_status rlhf__pass(const struct rlhf__model *m, const struct rlhf__episodes *e,
                       const rlhf_dist *dist, int64_t microbatch_tokens,
                       const struct rlhf__pass_out *out, struct rlhf__error *err) {
    uint32_t rows, tokens;
    rlhf__episodes_largest_slice(e, microbatch_tokens, &rows, &tokens);
    int32_t *offset = calloc(rows + 1u, sizeof *offset);
    if (!offset) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %u rows", rows);
    rlhf_forward f = {.size = sizeof f, .dist = dist};
    f.heads = (out->logp ? (uint32_t)RLHF_HEAD_LOGP : 0) |
              (out->value ? (uint32_t)RLHF_HEAD_VALUE : 0) |
              (out->hidden ? (uint32_t)RLHF_HEAD_HIDDEN : 0) |
              (out->score ? (uint32_t)RLHF_HEAD_SCORE : 0);
    rlhf_status st = RLHF_OK;
    for (uint32_t from = 0, to; st == RLHF_OK && from < e->n; from = to) {
        to = rlhf__episodes_slice_end(e, from, microbatch_tokens);
        rlhf_batch b = rlhf__episodes_batch(e, from, to, offset);
        size_t base = (size_t)e->offset[from];
        rlhf_heads h = {.size = sizeof h};
        if (out->logp) h.logp = out->logp + base;
        if (out->value) h.value = out->value + base;
        if (out->hidden) h.hidden = out->hidden + base * (size_t)m->info.d_model;
        if (out->score) h.score = out->score + (size_t)from * (size_t)m->n_labels;
        st = rlhf__model_forward(m, &b, &f, &h, err);
    }
    free(offset);
    return st;
}
