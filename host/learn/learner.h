// learner.h: the numerical core of training: a model, an objective and an optimizer, with what they
// add up over the minibatches of a phase. minibatch.h trains on a minibatch.
//
// The learner does not know phases, files, schedules, or where the rows come from.
#ifndef RLHF_HOST_LEARN_LEARNER_H
#define RLHF_HOST_LEARN_LEARNER_H

#include "base/error.h"
#include "base/watch.h"
#include "batch/rows.h"
#include "batch/shared_batch.h"
#include "learn/optim.h"
#include "model/model.h"
#include "model/reward_model.h"

#include <rlhf/algo.h>
#include <rlhf/model.h>

#include <signal.h>

struct rlhf__shards;

// ---- rows by use: how advantages() marks rows for the updates (enum rlhf_row_use) ----

enum { RLHF__ROW_USES = RLHF_USE_EXCLUDED + 1 };

// Rows, tokens and time of a phase's updates, for each enum rlhf_row_use.
struct rlhf__row_tally {
    int64_t rows[RLHF__ROW_USES];   // over all updates: a row counts in each epoch
    int64_t tokens[RLHF__ROW_USES]; // their response tokens
    double seconds[RLHF__ROW_USES]; // only of minibatches in which some row is not RLHF_USE_TRAINS
    int64_t timed;                  // response tokens of RLHF_USE_TRAINS rows that `seconds` covers
};

// Rows of a phase's updates that the host excludes, because an advantage or a return of their group
// is not finite.
struct rlhf__odd_rows {
    int64_t rows; // counted in each call of advantages()
    uint32_t row; // the first row with such a number, in the batch or minibatch
    float value;  // that number
    int32_t is_return;
};

// The first number of loss() in a phase that is not finite.
struct rlhf__odd_loss {
    const char *array; // "d_heads->logp"; "loss": the loss itself; NULL: every number was finite
    uint32_t row;      // of the batch (rlhf_loss_in.row)
    uint32_t at;       // token of the row, or label for the score head
    double value;
};

// Returns the number of rows of e with this use. [any]
uint32_t rlhf__row_use_count(const struct rlhf__rows *e, int use);

// Check the derivatives d of rows [from, to) of e: those of rows that the algorithm marked
// RLHF_USE_NO_GRADIENT must be 0; otherwise returns RLHF_E_INTERNAL. d begins at row `from`. `who`
// names the algorithm in the message. [any]
rlhf_status rlhf__row_use_check(const rlhf_head_gradients *d, const struct rlhf__rows *e,
                                uint32_t from, uint32_t to, const char *who,
                                struct rlhf__error *err);

// Set the derivatives on prompt tokens to 0, because loss() may leave anything there. [any]
void rlhf__prompts_clear(const rlhf_loss_in *, const rlhf_head_gradients *d);

// Find the first number of a result of loss() that is not finite. If there is one and *odd has none
// yet, describes it in *odd. [any]
void rlhf__odd_loss_find(const rlhf_loss_in *, const rlhf_loss_out *, struct rlhf__odd_loss *odd);

// Returns an estimate of the seconds that marked rows saved. A row without a gradient saves its
// backward pass; an excluded row saves both passes. A backward pass is assumed to take as long as
// two forward passes; its fixed costs are ignored. The time of a forward pass is measured on rows
// without a gradient. If there are no such rows, it is estimated as a third of the time of the rows
// that were trained in the same minibatches. Returns a negative number if no times were measured.
// [any]
double rlhf__row_tally_saved(const struct rlhf__row_tally *);

// ---- heads: host arrays for one microbatch, grown as needed ----

struct rlhf__head_store {
    rlhf_heads heads; // NULL for heads that are not used
    size_t tokens, rows;
};

// Allocate the heads whose bits are set in `heads`. `rows` and `tokens` are the numbers of rows and
// tokens that must fit. The contents of all heads are lost. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__head_store_reserve(struct rlhf__head_store *, uint32_t heads, size_t rows,
                                     size_t tokens, int32_t n_labels, struct rlhf__error *err);
// Return the heads that an algorithm sees: of a store of outputs, and of one of derivatives. [any]
rlhf_head_values rlhf__head_store_values(const struct rlhf__head_store *);
rlhf_head_gradients rlhf__head_store_gradients(const struct rlhf__head_store *);
// Set all numbers to 0. [any]
void rlhf__head_store_clear(struct rlhf__head_store *, size_t rows, size_t tokens,
                            int32_t n_labels);

#define RLHF__LEARNER_SUMS 4

// The function to minimize: the loss of a microbatch with its derivatives, as in rlhf/algo.h.
struct rlhf__objective {
    rlhf_status (*loss)(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                        struct rlhf__error *err);
    // Called after a step. *stop is 0 before the call; the function sets it to 1 to end the phase's
    // epochs. NULL: not called.
    rlhf_status (*stepped)(void *self, const rlhf_step_info *info, int32_t *stop,
                           struct rlhf__error *err);
    void *self;
    const char *name; // of the algorithm, in messages; "" for the host's own
};

struct rlhf__learner {
    const struct rlhf__model *model;
    const struct rlhf__model *kl_model; // the model that the KL head compares with, or NULL
    const struct rlhf__model *critic;   // NULL: the model has the value head
    // If not NULL, the model is a reward model. The score head that the algorithm sees is then the
    // reward of each row: the model's token scores, pooled, with gain and bias. Borrowed.
    const struct rlhf__reward_head *reward_head;
    struct rlhf__objective objective;
    struct rlhf__optim *optim, *critic_optim; // critic_optim is NULL without a critic
    // The shards that minibatches are divided into (shards.h), owned. NULL if minibatches are not
    // divided.
    struct rlhf__shards *shards;
    double *sums[RLHF__LEARNER_SUMS]; // the objective's own sums, kept for each shard; or NULL
    rlhf_plan plan;
    rlhf_dist dist; // the distribution under which log-probs are computed
    int64_t microbatch_tokens, max_new_tokens;
    struct rlhf__head_store out, grad;  // with every prompt written out, as the algorithm sees rows
    struct rlhf__shared_batch batch;    // the current microbatch
    const float *named[RLHF_NAMED_MAX]; // the current microbatch's log-probs of named models
    struct rlhf__head_store compact;    // with shared prompts: the model's outputs and gradients
    float *hidden; // with shared prompts: the reference's hidden states, [hidden_cap]
    size_t hidden_cap;
    int32_t written_out;       // 1: never share prompts (batch.share_prompts is off)
    int64_t phase;             // phase of the rows to train on, set by the caller
    int64_t epoch_minibatches; // of this phase, for the algorithm; 0: as many as planned
    // Differences between sampled and recomputed log-probs, in the forward passes before the first
    // update of a phase. `comparing` is 1 until that update.
    int32_t comparing;
    int64_t compared;
    double difference_sum, difference_max;
    // What the algorithm is told about the current minibatch: the number of rows, and the number of
    // response tokens that are in the loss.
    int64_t batch_sequences, batch_tokens;
    // The loss of the last minibatch, and the report of the policy's optimizer step.
    double last_loss;
    struct rlhf__optim_report last;
    // Totals of the phase.
    double loss_sum, norm_sum, clipped_sum;
    double norm_first, norm_max; // gradient norms: the first that is not 0, and the largest
    int64_t minibatches, steps;
    // Set by the caller: 1 if another minibatch of the phase follows. With several processes, the
    // forward pass of that minibatch may then begin before all new values of the policy have
    // arrived. Until that minibatch has ended or rlhf__shards_settle has returned, the policy must
    // not be used for anything else.
    int32_t more;
    // Receives the progress of a phase: `rows` is the number of rows done, and `rows_all` the
    // total. The caller sets the initial value of `rows`. NULL: progress is not reported.
    const struct rlhf__watch *watch;
    // Set by the caller: a flag that ends a phase between two microbatches, with RLHF_E_CANCELLED.
    // NULL: the phase is finished.
    const volatile sig_atomic_t *abandons;
    int64_t rows, rows_all;
    // For rows of a file with label 1, if there is a reference: fall_sum is the reference's
    // log-prob minus the model's, summed over response tokens; fall_tokens is the number of these
    // tokens.
    double fall_sum;
    int64_t fall_tokens;
    int32_t asked;  // 1 = some derivative in the current phase was not 0
    int64_t tokens; // tokens that the model computed; a shared prompt counts once
    double flops;   // FLOPs of GEMMs in all passes; without attention scores
    struct rlhf__row_tally tally;
    struct rlhf__odd_rows odd; // set by the caller
    struct rlhf__odd_loss odd_loss;
};

// The position of a minibatch in its phase, and its running totals.
struct rlhf__place {
    uint32_t epoch, minibatch;
    uint32_t shard;    // of the minibatch (rlhf_loss_in.shard)
    int train;         // 0: forward pass only, for rows without a gradient
    int only_compares; // 1: only for rlhf__learner_compare, without a loss
    int is_last;       // 1: the last microbatch of the shard, with a backward pass
    double loss;       // so far
};

// Does not free what its members point to; rlhf__shards_close frees the shards. [main]
void rlhf__learner_finish(struct rlhf__learner *);

// Begin a phase: clear the totals. [step]
void rlhf__learner_begin(struct rlhf__learner *);

// Announce the work of a phase: minibatches per epoch, and rows in all epochs. With compare = 1,
// the first minibatch's log-probs are compared with RLHF__LOGP_OLD, even if all its rows are
// excluded. [step]
void rlhf__learner_expect(struct rlhf__learner *, uint32_t minibatches, int64_t rows, int compare);

// For every response token of rows [from, to), add the absolute difference of `sampled` and `again`
// to the difference totals. Rows that older weights sampled are left out. Both arrays begin at the
// first token of row `from`. [any]
void rlhf__learner_compare(struct rlhf__learner *, const struct rlhf__rows *, uint32_t from,
                           uint32_t to, const float *sampled, const float *again);

#endif
