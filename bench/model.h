// model.h: a model with random weights, GPT-2 124M unless --model and --set choose another, driven
// through its plugin as the host drives it: training steps (train.c) and generations (decode.c).
//
// The host is not involved: no data rows, no rewards, and log-probs are the only loss.
#ifndef RLHF_BENCH_MODEL_H
#define RLHF_BENCH_MODEL_H

#include "bench.h"

enum { MODEL_TENSORS = 2048 };

// AdamW's arguments: all tensors that have a gradient, and the gradients' norm.
struct optimiser {
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
    struct optimiser *optimiser; // created by the first step
    rlhf_model_info info;
    int64_t position_params; // not used in any GEMM
};

// Ends the program on failure. Closed by bench_model_close.
struct model bench_model_open(const struct bench *b);
void bench_model_close(const struct bench *b, struct model *m);

// ---- train.c ----
struct train_times { // seconds
    double forward, backward, clip, update, refresh, total;
};

// One step of b->rows rows of b->len tokens; step counts from 1.
struct train_times bench_train_step(const struct bench *b, struct model *m, int64_t step);

// Multiply-adds * 2 of a training step.
double bench_train_flops(const struct bench *b, const struct model *m);

// Log-probs [rows * len] of ids [rows * len] in one forward without gradients; the first of a row
// is 0.
void bench_score(const struct bench *b, const struct model *m, const int32_t *ids, int rows,
                 int len, float *logp);

void bench_train(const struct bench *b, struct model *m); // prints a line or two

// ---- decode.c ----
// Prefill of all b->slots prompts (step 0), or one token for each row. next [slots]: read except at
// step 0, written; logp [slots] of the sampled tokens.
void bench_decode_step(const struct bench *b, const struct model *m, rlhf_gen *gen, int step,
                       int32_t *next, float *logp);
int32_t bench_prompt_token(const struct model *m, int row, int at); // the tokens of those prompts
void bench_decode(const struct bench *b, const struct model *m);    // prints a line or two

#endif
