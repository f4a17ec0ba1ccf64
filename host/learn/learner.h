// learner.h: the numerical core of training: a model, an objective and an optimiser. For each
// minibatch it runs forward, loss and backward in microbatches and takes one optimiser step.
//
// It does not know the source of the rows, phases, files or schedules.
#ifndef RLHF_HOST_LEARNER_H
#define RLHF_HOST_LEARNER_H

#include "base/error.h"
#include "base/watch.h"
#include "batch/rows.h"
#include "batch/shared_batch.h"
#include "learn/optim.h"
#include "model/model.h"
#include "model/reward_model.h"

#include <rlhf/algo.h>
#include <rlhf/model.h>

// ---- rows by their use in the updates, as advantages() sets it (enum rlhf_row_use) ----

enum { RLHF__ROW_USES = RLHF_ROW_EXCLUDED + 1 };

// Rows, tokens and time of the updates of a phase, by enum rlhf_row_use.
struct rlhf__row_tally {
    int64_t rows[RLHF__ROW_USES];   // in all updates: each epoch counts
    int64_t tokens[RLHF__ROW_USES]; // their response tokens
    double seconds[RLHF__ROW_USES]; // only of minibatches in which some row is not TRAINS
    int64_t timed;                  // response tokens of the TRAINS rows in `seconds`
};

// Number of rows of e with this use. [any]
uint32_t rlhf__row_use_count(const struct rlhf__rows *e, int use);

// Check the derivative of rows that the algorithm marked as still: RLHF_E_INTERNAL unless all of it
// is 0. d has `total` tokens per head. [any]
rlhf_status rlhf__row_use_check(const rlhf_heads *d, uint32_t total, struct rlhf__error *err);

// Estimated seconds saved: the backward pass of rows left out of it, and the forward pass of masked
// rows. A backward pass counts as two forward passes. The forward pass is timed on still rows;
// without any it counts as a third of the time of rows trained in the same minibatches. Negative if
// neither was timed. Fixed costs of a backward pass are ignored. [any]
double rlhf__row_tally_saved(const struct rlhf__row_tally *);

// ---- heads: host arrays for one microbatch, grown as needed ----

struct rlhf__head_store {
    rlhf_heads heads; // unused ones are NULL
    size_t tokens, rows;
};

// Allocate every head of `heads` for so many `rows` and `tokens`; contents are lost. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__head_store_reserve(struct rlhf__head_store *, uint32_t heads, size_t rows,
                                     size_t tokens, int32_t n_labels, struct rlhf__error *err);
// Set all numbers to 0. [any]
void rlhf__head_store_clear(struct rlhf__head_store *, size_t rows, size_t tokens,
                            int32_t n_labels);

// What is minimised: the loss of a microbatch and its derivatives, as in rlhf/algo.h.
struct rlhf__objective {
    rlhf_status (*loss)(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                        struct rlhf__error *err);
    // Called after a step; *stop, which is 0, = 1 ends the phase's epochs. NULL = not needed.
    rlhf_status (*stepped)(void *self, const rlhf_step_info *info, int32_t *stop,
                           struct rlhf__error *err);
    void *self;
};

struct rlhf__learner {
    const struct rlhf__model *model;
    const struct rlhf__model *kl_model; // NULL, or the model on the KL head's other side
    const struct rlhf__model *critic;   // NULL: the model has the value head
    // Not NULL: the model is a reward model. The algorithm's score head is then the pooled reward
    // of each row, gain and bias applied, computed from the model's score per token. Borrowed.
    const struct rlhf__reward_head *reward_head;
    struct rlhf__objective objective;
    struct rlhf__optim *optim, *critic_optim; // critic_optim NULL without a critic
    rlhf_plan plan;
    rlhf_dist dist; // of the log-probs
    int64_t microbatch_tokens, max_new_tokens;
    struct rlhf__head_store out, grad;  // rows written out: the algorithm's view
    struct rlhf__shared_batch batch;    // the current microbatch
    const float *named[RLHF_NAMED_MAX]; // the current microbatch's log-probs of named models
    struct rlhf__head_store compact;    // with shared prompts: the model's outputs and gradients
    float *hidden;                      // with shared prompts: the reference's hidden states,
                                        // [hidden_cap]
    size_t hidden_cap;
    int32_t written_out;       // 1: prompts are never shared (batch.share_prompts is off)
    int64_t phase;             // of the rows that are learned from, set by the caller
    int64_t epoch_minibatches; // of the current phase, for the algorithm; 0: as many as planned
    // Sampled minus recomputed log-prob, over the forward passes before the first update of a
    // phase.
    int32_t comparing;
    int64_t compared;
    double difference_sum, difference_max;
    // Of the current minibatch, for the algorithm: all rows, and the response tokens in the loss.
    int64_t batch_sequences, batch_tokens;
    // The last minibatch: its loss and the policy's optimiser step.
    double last_loss;
    struct rlhf__optim_report last;
    // Totals of the phase.
    double loss_sum, norm_sum, clipped_sum;
    double norm_first, norm_max; // gradient norms: the first that is not 0, and the largest
    int64_t minibatches, steps;
    // Receives the rows done, counting from `rows` of rows_all (the caller's numbers). NULL = none.
    const struct rlhf__watch *watch;
    int64_t rows, rows_all;
    // For rows of a file with label 1, if there is a reference: the sum, over their response
    // tokens, of its log-prob minus the model's; and the number of these tokens.
    double fall_sum;
    int64_t fall_tokens;
    int32_t asked, reserved; // 1: some derivative of the current phase was not 0
    int64_t tokens;          // that the model computed; a shared prompt counts once
    double flops;            // of the matrix products of all passes, forward and backward; without
                             // attention scores
    struct rlhf__row_tally tally;
};

void rlhf__learner_finish(struct rlhf__learner *); // frees the arrays, not what it points to [main]

// Begin a phase: clear the totals. [step]
void rlhf__learner_begin(struct rlhf__learner *);

// Announce the work: minibatches per epoch, and rows in all epochs. compare = 1: compare the first
// minibatch's forward pass with RLHF__LOGP_OLD, even if all its rows are masked. [step]
void rlhf__learner_expect(struct rlhf__learner *, uint32_t minibatches, int64_t rows, int compare);

// Train on one minibatch: compute gradients of the objective's loss over all rows, then take an
// optimiser step with learning rates times lr_factor. Then the weights are re-packed and the
// objective is called; *stop = 1 if it ends the phase.
//
// Prompts are shared if the rows allow it (RLHF__SHARE_PROMPTS) and the model can;
// microbatch_tokens limits the tokens that the model computes. If a loss or gradient is not finite,
// the step is skipped. Policy and critic are clipped by separate gradient norms. Rows that the
// algorithm marks as still or masked (rows->use) are left out of the backward pass; the step is
// taken even if all are. [step]
rlhf_status rlhf__learner_minibatch(struct rlhf__learner *, const struct rlhf__rows *,
                                    uint32_t epoch, uint32_t minibatch, double lr_factor,
                                    int32_t *stop, struct rlhf__error *err);

// Add |sampled - again| over the response tokens of rows [from, to) to the difference totals; both
// arrays begin at row `from`'s first token. [any]
void rlhf__learner_compare(struct rlhf__learner *, const struct rlhf__rows *, uint32_t from,
                           uint32_t to, const float *sampled, const float *again);

#endif
