// adapters.h: models with low-rank adapters of every kind, on each backend. Shared by the tests of
// adapters.
#ifndef TESTS_MODELS_ADAPTERS_H
#define TESTS_MODELS_ADAPTERS_H

#include "on_backends.h"
#include "vectors.h"

// An architecture and its adapted layers. If `stored_in_out` is 1, linear layers are stored as [in,
// out].
struct adapted {
    const char *plugin;
    const struct setting *settings;
    const char *target[3];
    int32_t rank, n_labels, value_kind, stored_in_out;
    uint32_t heads;
};
enum { N_ADAPTED = 14, ADAPTED_HEADS = 5 };
#define ADAPTED_SCALE 1.75
extern const struct adapted adapted_kinds[N_ADAPTED];
extern const struct setting adapted_untied_qwen2[];

// How to open a model, besides its arguments. If `plain` is 1, the model has no adapter. If `zero`
// is 1, B stays 0.
struct adapted_how {
    int32_t dtype, plain, recompute, zero, trainable;
    const void *base;
};

// Returns an adapter with the targets and the rank of `k` and with ADAPTED_SCALE. The targets point
// into `k`.
rlhf_adapter adapter_of(const struct adapted *k);
// Opens a model on the group's backend, or on any other. Close it with model_close.
struct model adapted_open(const struct adapted *k, struct adapted_how h);
struct model adapted_open_on(const struct backend *b, const struct adapted *k,
                             struct adapted_how h);
void adapted_zero_ups(struct model *m); // all B = 0

// Heads of a batch, [ADAPTED_HEADS, adapted_per_head]; free with test_free.
uint64_t adapted_per_head(const rlhf_batch *b);
float *adapted_heads(struct model *m, const struct adapted *k, const rlhf_batch *b, int32_t train,
                     uint32_t flags);
void adapted_backward(struct model *m, const struct adapted *k, const rlhf_batch *b);

rlhf_param adapted_param(struct model *m, const char *name);
// Fails the test at the first of n numbers that differs between `a` and `b`.
void adapted_same(const float *a, const float *b, uint64_t n, const char *what);
// Checks that one step gives the models `x` and `y` the same bits of heads and gradients.
void adapted_same_step(const struct adapted *k, struct model *x, struct model *y,
                       const rlhf_batch *b);

#endif
