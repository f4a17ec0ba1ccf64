// learner_kit.h: a learner on two groups of four rows: models with random weights, an algorithm
// that uses every head and records its inputs, and the results of a minibatch.
#ifndef RLHF_TESTS_LEARNER_KIT_H
#define RLHF_TESTS_LEARNER_KIT_H

#include "e2e.h"
#include "learn/minibatch.h"
#include "learn/pass.h"
#include "learn/plan.h"
#include "model/session.h"

#define ROWS     8
#define GROUP    4
#define PROMPT   9
#define RESPONSE 6
#define TOTAL    (ROWS * (PROMPT + RESPONSE))

// The inputs that the algorithm recorded.
struct seen {
    int calls;
    uint32_t at; // number of recorded tokens so far
    float logp[TOTAL], entropy[TOTAL], kl[TOTAL], value[TOTAL];
    float old[TOTAL], sampled[TOTAL]; // of rollouts
    float ref[TOTAL];                 // set if the plan asks for it
    int64_t version[ROWS], steps;
    uint32_t rows, reserved;
    double bad; // added to the loss
    rlhf_step_info step;
};

struct fixture {
    struct e2e *files;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    struct rlhf__model *policy, *reference, *critic;
    struct rlhf__optim *optim, *critic_optim;
    struct rlhf__plugin plugin;
    struct rlhf__instance algo;
    struct seen seen;
    struct rlhf__rows e;
    struct rlhf__learner learner;
    const struct rlhf__optim_config *optim_config; // NULL: see open_optim
    struct rlhf__share share;                      // of optimizers and learner; zeros: one shard
    int32_t stop;
    int32_t no_range; // 1: the optimizers do not know the range of all gradients
    int32_t apart;    // 1: the table does not say that device memory is host memory
    int32_t reserved;
};

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct rlhf__error err = {0, ""};                                                          \
        if ((call) != RLHF_OK) fail_msg("%s: %s", #call, err.text);                                \
    } while (0)

// For cmocka: *state becomes a struct fixture without models.
int learner_setup(void **state);
int learner_teardown(void **state);

// Reopens models, optimizers and rows. `dtype` is compute.dtype. If `critic` is set, the critic is
// a separate model.
void learner_open(struct fixture *f, const char *backend, int32_t dtype, int64_t threads,
                  int critic);

// The results of a minibatch.
struct result {
    struct seen seen;
    double loss;
    float *grad; // gradients of all parameters, concatenated
    size_t n, tensors, end[128];
    int64_t tokens;
};

// Runs the whole batch as one minibatch, which must take `calls` microbatches. Free the result with
// learner_result_free.
struct result *learner_run(struct fixture *f, int share, int64_t microbatch_tokens, int calls);
void learner_result_free(struct result *r);

// Appends the gradients. The optimizer `o` stores them as its first moments.
void learner_collect(struct result *r, const struct fixture *f, const struct rlhf__optim *o);

void learner_same_heads(const struct seen *a, const struct seen *b);

// Asserts that all tensors have a gradient and agree within `rel` of their largest element.
void learner_close_gradients(const struct result *a, const struct result *b, double rel);

#endif
