// fixture.h: an algorithm plugin loaded from the build tree, and a ragged batch for it.
//
// The fixture plays the host's part: it calls advantages() once, then loss() on any split of the
// rows.
#ifndef RLHF_TESTS_ALGOS_FIXTURE_H
#define RLHF_TESTS_ALGOS_FIXTURE_H

#include "support/check.h"
#include <rlhf/algo.h>
#include <rlhf/test.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_ROWS = 64, MAX_TOKENS = 1024 };

struct algo {
    struct rlhf_test_host *host;
    const rlhf_plugin *plugin;
    const rlhf_algo_ops *ops;
    void *self;
    rlhf_plan plan;
    double loss; // sum of the results of loss() since the last step
    union {
        unsigned char bytes[1024];
        double align;
    } config;
};

struct batch {
    int32_t n, total, max_len, n_labels;
    int64_t minibatches; // the value that loss() gets; 0 means the planned number
    int32_t offset[MAX_ROWS + 1], prompt_len[MAX_ROWS], group[MAX_ROWS], label[MAX_ROWS];
    uint8_t finished[MAX_ROWS], use[MAX_ROWS]; // use: the results of the last advantages()
    float score[MAX_ROWS];
    // [total]
    float token_reward[MAX_TOKENS], old[MAX_TOKENS], ref[MAX_TOKENS], value_old[MAX_TOKENS];
    float advantage[MAX_TOKENS], returns[MAX_TOKENS];
    double carry_row[MAX_ROWS * RLHF_CARRY_MAX], carry_token[MAX_TOKENS * RLHF_CARRY_MAX];
    float logp[MAX_TOKENS], entropy[MAX_TOKENS], kl[MAX_TOKENS], value[MAX_TOKENS];
    float d_logp[MAX_TOKENS], d_entropy[MAX_TOKENS], d_kl[MAX_TOKENS], d_value[MAX_TOKENS];
    float class_score[MAX_ROWS * 8], d_class_score[MAX_ROWS * 8]; // [n, n_labels]
    const float *sampled;        // [total] log-probs when the rows were sampled; NULL: `old`
    const float *margin;         // [n] of the rows of preferences, or NULL
    const float *reward_score;   // [n, n_rewards] each reward's score, or NULL
    const double *reward_weight; // [n_rewards]
    uint32_t n_rewards, spare;
};

// The first step of the first epoch, to pass to minibatch_end().
extern const rlhf_step_info algo_step;

// The service that the host offers to algorithms. Set it before opening an algorithm. If its id is
// NULL, the host offers no service.
extern struct rlhf_test_service algo_offer;

// Loads a file (e.g. "ppo.so") and sets options ("a=1,b=x"). Returns the status of create().
rlhf_status algo_try(struct algo *, const char *file, const char *options);

// As algo_try, but asserts success and makes the plan for batch_size rows.
void algo_open(struct algo *, const char *file, const char *options, int32_t batch_size);

// Calls destroy(), then asserts that nothing leaked.
void algo_close(struct algo *);

// Asserts that create() reports an error if memory runs out.
void algo_needs_memory(const char *file);

// Computes the advantages of all rows.
rlhf_status batch_advantages(struct algo *, struct batch *);

// Calls loss() for rows [from, to), with the whole batch as the minibatch. The rows are one
// microbatch, or several if excluded rows lie between them. Fills these rows of d_* and returns the
// loss.
double batch_loss(struct algo *, struct batch *, int32_t from, int32_t to, uint32_t epoch);

// Compares n derivatives of the whole batch's loss with central differences. x are inputs of the
// batch, d the array of the batch that has their derivatives. `tol` is as for assert_near. If
// `kink` is not 0, skips the numbers whose slopes on the two sides differ by more than `kink`, as
// at the boundary of a clip; there must be few of them.
void batch_differences(struct algo *, struct batch *, float *x, const float *d, int32_t n,
                       double tol, double kink, const char *what);

// Calls minibatch_end() after a step of `epoch`. `skipped` is 1 if the host skipped the step.
// Returns 1 if the algorithm ends the phase.
int32_t algo_step_end(struct algo *, uint32_t epoch, int32_t skipped);

// These call minibatch_end() and phase_end(). *stop is set to 1 if the algorithm ends the phase,
// otherwise to 0. `phase` is the number of the phase.
rlhf_status algo_minibatch_end(struct algo *, const rlhf_step_info *, int32_t *stop);
rlhf_status algo_phase_end(struct algo *, int64_t phase);

// Returns a metric, which must have been reported.
double metric(const struct algo *, const char *name);

// Makes rows of the given lengths with random contents. The same seed gives the same contents.
void batch_random(struct batch *, int32_t n, uint64_t seed);

// Asserts |got - want| <= tol * max(1, |want|). The message names `what`.
void assert_near(double got, double want, double tol, const char *what);

#endif
