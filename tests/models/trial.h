// trial.h: a tiny model with some of the heads, for the batch of vec_ids, and its reference.
#ifndef TESTS_MODELS_TRIAL_H
#define TESTS_MODELS_TRIAL_H

#include "vectors.h"

enum { D = 32 }; // n_embd of tiny_gpt2

// A model under test, its planned heads, and its reference.
struct trial {
    struct model m, ref;
    rlhf_forward f;
    float *hidden; // the reference's
};

struct outputs {
    float logp[VEC_TOTAL], entropy[VEC_TOTAL], kl[VEC_TOTAL], value[VEC_TOTAL];
    float score[VEC_ROWS * VEC_LABELS], token_score[VEC_TOTAL];
};

// Opens a model of `plugin` on the backend with these heads, without a reference.
void trial_open_as(struct trial *t, const struct backend *backend, const char *plugin,
                   const struct setting *settings, uint32_t heads, rlhf_model_open o);
// Opens tiny_gpt2. If `heads` has KL, also opens its reference, with other weights.
void trial_open(struct trial *t, const struct backend *backend, uint32_t heads, rlhf_model_open o);
void trial_close(struct trial *t);
rlhf_heads trial_heads(struct outputs *o);
// The loss is a weighted sum of every planned head.
double trial_loss(struct trial *t, struct outputs *o);
// Computes the gradients of that loss.
void trial_gradient(struct trial *t);
double norm2(const float *x, uint64_t n);

#endif
