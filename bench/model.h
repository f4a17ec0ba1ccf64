// model.h: a model with random weights: GPT-2 124M, unless --model and --set choose another. The
// benchmark drives the model's plugin as the host does: training steps (train.c) and generations
// (decode.c).
//
// The benchmark does not use the host. It has no data rows and no rewards, and its loss is computed
// from log-probs only.
#ifndef RLHF_BENCH_MODEL_H
#define RLHF_BENCH_MODEL_H

#include "bench.h"

enum { MODEL_TENSORS = 2048 };

// The arguments of AdamW: all tensors that have a gradient, and the norm of the gradients.
struct optimizer {
    uint64_t len[MODEL_TENSORS];
    rlhf_dev g[MODEL_TENSORS], w[MODEL_TENSORS], m[MODEL_TENSORS], v[MODEL_TENSORS];
    double lr[MODEL_TENSORS], decay[MODEL_TENSORS];
    rlhf_tensors list;
    rlhf_dev clip;
};

struct model {
    const rlhf_plugin *plugin;
    const rlhf_model_ops *ops;
    void *config, *self;
    struct optimizer *optimizer; // created by the first step
    rlhf_model_info info;
    int64_t position_params; // parameters that no GEMM uses
};

// Ends the program on failure. Release the model with bench_model_close.
struct model bench_model_open(const struct bench *b);
void bench_model_close(const struct bench *b, struct model *m);

// ---- train.c ----
struct train_times { // seconds
    double forward, backward, clip, update, refresh, total;
};

// Runs one training step on b->rows rows of b->len tokens. `step` counts from 1.
struct train_times bench_train_step(const struct bench *b, struct model *m, int64_t step);

// Returns the number of floating-point operations of a training step. A multiply-add counts as two.
double bench_train_flops(const struct bench *b, const struct model *m);

void bench_train(const struct bench *b, struct model *m); // prints a line or two

// ---- decode.c ----
// Step 0 prefills all b->slots prompts. Every other step decodes one token for each row. `next` has
// b->slots elements: it holds the last tokens, which step 0 does not read, and receives the sampled
// tokens. `logp`, of the same length, receives their log-probs.
void bench_decode_step(const struct bench *b, const struct model *m, rlhf_gen *gen, int step,
                       int32_t *next, float *logp);
void bench_decode(const struct bench *b, const struct model *m); // prints a line or two

#endif
