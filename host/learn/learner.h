// learner.h: the numerical core of training: a model, an objective and an optimiser. Given a
// minibatch it runs forward, loss and backward in microbatches and takes one optimiser step.
//
// It does not know where rows come from, nor phases, files or schedules.
#ifndef RLHF_HOST_LEARNER_H
#define RLHF_HOST_LEARNER_H

#include "base/watch.h"
#include "batch/rows.h"
#include "batch/shared_batch.h"
#include "learn/head_store.h"
#include "learn/optim.h"
#include "learn/row_use.h"
#include "model/model.h"
#include "model/reward_head.h"

#include <rlhf/algo.h>

// What is minimised: the loss of a microbatch and its derivatives, as rlhf/algo.h has them.
struct rlhf__objective {
    rlhf_status (*loss)(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                        struct rlhf__error *err);
    // Told what a step did; *stop, which is 0, = 1 ends the phase's epochs. NULL = it does not
    // care.
    rlhf_status (*stepped)(void *self, const rlhf_step_info *info, int32_t *stop,
                           struct rlhf__error *err);
    void *self;
};

struct rlhf__learner {
    const struct rlhf__model *model;
    const struct rlhf__model *reference; // NULL, or the model of the KL head
    const struct rlhf__model *critic;    // NULL: the value head is the model's own
    // Not NULL: the model is a reward model. The score head that the algorithm sees is the pooled
    // reward of each row, gain and bias applied, from the model's scores a token. Borrowed.
    const struct rlhf__reward_head *reward_head;
    struct rlhf__objective objective;
    struct rlhf__optim *optim, *critic_optim; // critic_optim NULL without a critic
    rlhf_plan plan;
    rlhf_dist dist; // of the log-probs
    int64_t microbatch_tokens, max_new_tokens;
    struct rlhf__head_store out, grad; // rows written out: what the algorithm sees
    struct rlhf__shared_batch batch;   // the microbatch at hand
    struct rlhf__head_store compact;   // with shared prompts: what the model gives and takes
    float *hidden;                     // with shared prompts: the reference's, [hidden_cap]
    size_t hidden_cap;
    int32_t written_out;       // 1: prompts are never shared (batch.share_prompts is off)
    int64_t epoch_minibatches; // of the phase at hand, for the algorithm; 0: as many as planned
    // Sampled minus recomputed log-prob, over the forwards before the first update of a phase.
    int32_t comparing;
    int64_t compared;
    double difference_sum, difference_max;
    // Of the minibatch at hand, for the algorithm: all rows, and the response tokens that count.
    int64_t batch_sequences, batch_tokens;
    // The last minibatch: its loss and the policy's optimiser step.
    double last_loss;
    struct rlhf__optim_report last;
    // Totals of the phase.
    double loss_sum, norm_sum, clipped_sum;
    double norm_first, norm_max; // gradient norms: the first that is not 0, and the largest
    int64_t minibatches, steps;
    // Told of rows done, `rows` of rows_all (the caller's numbers) and on; NULL = nobody.
    const struct rlhf__watch *watch;
    int64_t rows, rows_all;
    // Rows with label 1 of a file, where a reference knows them: the sum of its log-probs of
    // response tokens less the model's, and how many tokens.
    double fall_sum;
    int64_t fall_tokens;
    int32_t asked, reserved; // 1: some derivative of the phase at hand was not 0
    int64_t tokens;          // that went through the model; a shared prompt counts once
    double flops;            // of the products of all forwards and backwards; no attention scores
    struct rlhf__row_books books;
};

// 1 when the plan wants to know what the reference says of the rows. [any]
int rlhf__plan_wants_reference(const rlhf_plan *plan);

void rlhf__learner_finish(struct rlhf__learner *); // frees the arrays, not what it points to [main]

// A phase begins: the totals are cleared. [step]
void rlhf__learner_begin(struct rlhf__learner *);

// Announces the work: minibatches of an epoch, rows in all epochs; compare = 1: compare the first
// minibatch's forward pass with RLHF__LOGP_OLD, even if all its rows are masked. [step]
void rlhf__learner_expect(struct rlhf__learner *, uint32_t minibatches, int64_t rows, int compare);

// One minibatch: gradients of the objective's loss over all rows, then an optimiser step with
// learning rates times lr_factor, then the weights are re-packed and the objective is told; *stop =
// 1 when it wants no more of this phase. Prompts are shared where the rows say so
// (RLHF__SHARE_PROMPTS) and the model can; microbatch_tokens counts what it computes. A loss or
// gradient that is not finite skips the step; policy and critic have gradient norms and clipping of
// their own. Rows that the algorithm calls still or masked (rows->use) are left out of the backward
// pass; the step is taken all the same. [step]
rlhf_status rlhf__learner_minibatch(struct rlhf__learner *, const struct rlhf__rows *,
                                    uint32_t epoch, uint32_t minibatch, double lr_factor,
                                    int32_t *stop, struct rlhf__error *err);

// Fold |sampled - again| over the response tokens of rows [from, to) into the difference totals;
// both arrays begin at row `from`'s first token. [any]
void rlhf__learner_compare(struct rlhf__learner *, const struct rlhf__rows *, uint32_t from,
                           uint32_t to, const float *sampled, const float *again);

#endif
