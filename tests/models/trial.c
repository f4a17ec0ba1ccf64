// trial.c: opens a trial and computes its loss and gradients.
#include "trial.h"

#include <math.h>
#include <string.h>

void trial_open_as(struct trial *t, const struct backend *backend, const char *plugin,
                   const struct setting *settings, uint32_t heads, rlhf_model_open o) {
    memset(t, 0, sizeof *t);
    o.size = sizeof o;
    o.dtype = RLHF_F32;
    o.trainable = 1;
    o.compute = backend->compute;
    t->m = model_open(plugin, settings, &o);
    model_fill(&t->m, 0.3);
    t->f.size = sizeof t->f;
    t->f.heads = heads;
    t->f.train = 1;
}

void trial_open(struct trial *t, const struct backend *backend, uint32_t heads, rlhf_model_open o) {
    trial_open_as(t, backend, "gpt2", tiny_gpt2, heads, o);
    if (!(heads & RLHF_HEAD_KL)) return;
    const rlhf_model_open frozen = open_args(backend, RLHF_F32, 0);
    t->ref = model_open("gpt2", tiny_gpt2, &frozen);
    model_fill(&t->ref, 0.25);
    t->hidden = test_malloc(VEC_TOTAL * D * sizeof *t->hidden);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = t->hidden};
    must(&t->ref, t->ref.ops->forward(t->ref.self, &vec_batch, &f, &out));
    t->f.kl_self = t->ref.self;
    t->f.kl_hidden = t->hidden;
}

void trial_close(struct trial *t) {
    model_close(&t->m);
    if (t->hidden) model_close(&t->ref);
    if (t->hidden) test_free(t->hidden);
}

rlhf_heads trial_heads(struct outputs *o) {
    rlhf_heads h = {.size = sizeof h,
                    .logp = o->logp,
                    .entropy = o->entropy,
                    .kl = o->kl,
                    .value = o->value,
                    .score = o->score,
                    .token_score = o->token_score};
    return h;
}

double trial_loss(struct trial *t, struct outputs *o) {
    const rlhf_heads h = trial_heads(o);
    double sum = 0;
    memset(o, 0, sizeof *o);
    must(&t->m, t->m.ops->forward(t->m.self, &vec_batch, &t->f, &h));
    for (uint64_t i = 0; i < VEC_TOTAL; i++)
        sum += (double)vec_weight(i) *
               ((double)o->logp[i] + 2 * (double)o->entropy[i] + 3 * (double)o->kl[i] +
                (double)o->value[i] + (double)o->token_score[i]);
    for (uint64_t i = 0; i < VEC_ROWS * VEC_LABELS; i++)
        sum += (double)vec_weight(i) * (double)o->score[i];
    return sum;
}

void trial_gradient(struct trial *t) {
    struct outputs o, d;
    const rlhf_heads grad = trial_heads(&d);
    trial_loss(t, &o);
    for (uint64_t i = 0; i < VEC_TOTAL; i++) {
        d.logp[i] = d.value[i] = d.token_score[i] = vec_weight(i);
        d.entropy[i] = 2 * vec_weight(i);
        d.kl[i] = 3 * vec_weight(i);
    }
    for (uint64_t i = 0; i < VEC_ROWS * VEC_LABELS; i++)
        d.score[i] = vec_weight(i);
    model_zero_grad(&t->m);
    must(&t->m, t->m.ops->backward(t->m.self, &vec_batch, &t->f, &grad));
}

double norm2(const float *x, uint64_t n) {
    double s = 0;
    for (uint64_t i = 0; i < n; i++)
        s += (double)x[i] * (double)x[i];
    return sqrt(s);
}
