// rlhf/algo.h: algorithm plugins. An algorithm says what it needs (plan), turns rewards into
// advantages, and turns heads into a loss and its derivative with respect to those heads. It sees
// host arrays of per-token numbers only, never a tensor; the host owns the loop.
//
// Calls in one phase of a rollout algorithm:
//   plan (at start; again when a supervised run knows its rows) .. advantages (once a phase, or
//   once a minibatch) .. per epoch, per minibatch: loss (each microbatch) .. minibatch_end ..
//   phase_end.
// Supervised algorithms (any other source) have no rollout: loss, minibatch_end, phase_end; and
// before them advantages, a look at the whole batch, where RLHF_PLAN_RECOMPUTE_LOGP is planned.
//
// Log-probs, entropies and KLs are natural logarithms (nats).
//
// The loss must not depend on the split into microbatches: divide by the minibatch totals in
// rlhf_loss_in, so that the microbatch losses (and derivatives) add up to the minibatch's.
//
// With several workers, advantages() sees the same rows on each of them, loss() some of a
// minibatch's microbatches: sums that loss() keeps are completed by host->reduce, in
// minibatch_end() or phase_end(), before anything is decided or reported. [R:split]
#ifndef RLHF_ALGO_H
#define RLHF_ALGO_H

#include "model.h"
#include "plugin.h"

// What a plan may ask of a source of rows; the host refuses the rest by name. [R:plan]
//
//   ROLLOUT      logp, entropy, kl, value    every flag    epochs, minibatches, groups of 1 or more
//   TEXT         logp, entropy, kl           file flags    1 of each
//   LABELLED     logp, entropy, kl, score    file flags    1 of each
//   PREFERENCES  logp, entropy, kl, score    file flags,   1 of each
//                                            MARGINS
//   COMPLETIONS  logp, entropy, kl           file flags,   1 of each
//                                            MISMATCHED
//
// ROLLOUT needs advantages(), and so does RECOMPUTE_LOGP of other rows. File flags: REFERENCE,
// RECOMPUTE_LOGP, FULL_SUPPORT, UNIT_TEMPERATURE, WHOLE_GROUPS, LEAVES_OUT.
enum rlhf_source {
    RLHF_SOURCE_ROLLOUT = 1,
    RLHF_SOURCE_TEXT = 2,     // {"text"} or {"messages"} rows; prompt_len 1, or more with left_out
    RLHF_SOURCE_LABELLED = 3, // {"text", "label"} rows
    // {"prompt", "chosen", "rejected"} or {"prompt", "responses", "best"} rows: 2 or more sequences
    // a row, which share a group number; label 1 marks the preferred one, 0 the others. A group is
    // never split. With RLHF_HEAD_SCORE the model is a reward model and heads->score [n] holds the
    // pooled reward of each response, gain and bias applied.
    RLHF_SOURCE_PREFERENCES = 4,
    // {"prompt", "completion", "label"} rows: label 1 for a completion that is wanted (true), 0 for
    // one that is not (false). A group of its own each.
    RLHF_SOURCE_COMPLETIONS = 5
};

enum rlhf_plan_flag {
    RLHF_PLAN_REFERENCE = 1,       // logp_ref is needed; it is there with RLHF_HEAD_KL as well
    RLHF_PLAN_MINIBATCH_SCOPE = 2, // advantages() is called for each minibatch, not for the batch
    // logp_old from a second forward instead of the rollout. Of rows of a file: from a forward of
    // their own, and advantages() sees the whole batch before the first loss().
    RLHF_PLAN_RECOMPUTE_LOGP = 4,
    RLHF_PLAN_FULL_SUPPORT = 8,      // log-probs over the full vocabulary although top-k/p samples
    RLHF_PLAN_UNIT_TEMPERATURE = 16, // log-probs at temperature 1 whatever the sampling temperature
    // A group must not be split over minibatches: else the host refuses.
    RLHF_PLAN_WHOLE_GROUPS = 32,
    // loss() leaves out the tokens that rlhf_loss_in.left_out marks: only then may a user ask for
    // a loss on some of a row's tokens (data.assistant_only).
    RLHF_PLAN_LEAVES_OUT = 64,
    // COMPLETIONS: behind each row one more of its group, its prompt with another's completion:
    // that of the row before it in the batch (of the last, behind the first; of another row of the
    // file where the batch has one row), cut at the end to the context. Its label is -1, and
    // `use` spares it what it does not need.
    RLHF_PLAN_MISMATCHED = 128,
    // PREFERENCES: loss() uses rlhf_loss_in.margin. Without it a data row with a margin is refused.
    RLHF_PLAN_MARGINS = 256
    // Bits 24 and up belong to rlhf/draft/, which does not freeze.
};

// Metrics of an algorithm that the host reads; it reads no others, but for what checkpoint.best
// names. All are optional. (The host reports what responses are paid itself, "objective/scores".)
#define RLHF_METRIC_KL             "objective/kl"          // early_stop.kl, the progress line
#define RLHF_METRIC_LABEL_ACCURACY "classify/accuracy"     // the progress line: of labelled rows
#define RLHF_METRIC_PAIR_ACCURACY  "reward_model/accuracy" // the progress line: of preferences
// Share of groups whose rows are all paid the same: where it is 1 and there is no critic, the host
// warns that rewards teach nothing.
#define RLHF_METRIC_FLAT_GROUPS "frac_reward_zero_std"

// What comes of a row in the updates, as advantages() says.
enum rlhf_row_use {
    RLHF_ROW_TRAINS = 0,
    // loss() sees it, but its derivatives are exactly 0 whatever the heads say: it is forwarded,
    // and left out of the backward pass. Any other derivative ends the run, RLHF_E_INTERNAL.
    RLHF_ROW_STILL = 1, // [R:row-use]
    // It is no part of the loss: loss() does not see it, batch_tokens does not count it (but
    // batch_sequences does), and no forward is spent on it.
    RLHF_ROW_MASKED = 2
};

// What the run looks like, for plan(). Read only.
typedef struct rlhf_run_info {
    uint32_t size;
    int32_t phases;     // planned number of phases
    int32_t batch_size; // sequences a phase
    int32_t max_new_tokens;
    int32_t n_labels; // of labelled rows; 0 = not known yet, or there are none
    int32_t reserved;
    double temperature;
} rlhf_run_info;

typedef struct rlhf_plan {
    uint32_t size;
    int32_t source;              // enum rlhf_source
    uint32_t heads;              // heads of the training forward, bits of enum rlhf_head
    uint32_t flags;              // bits of enum rlhf_plan_flag
    int32_t epochs, minibatches; // per phase; 1 and 1 for supervised
    int32_t group_size;          // samples a prompt, 1 = no groups
    // Rounds in a phase, at most, in which the host draws responses to further prompts for groups
    // whose rows are all paid the same; groups of 2 or more. 0: none.
    int32_t fresh_rounds;
} rlhf_plan;

// A batch (or one minibatch) of finished rollouts, or the batch of rows of a file, which nobody
// drew or paid: score, token_reward and logp_sampled are zeros. Arrays [total] are 0 on prompt
// tokens.
typedef struct rlhf_rollout {
    uint32_t size, n, total;
    int32_t max_new_tokens;
    uint64_t phase;                     // the first is 0
    const int32_t *offset, *prompt_len; // [n + 1], [n]
    const int32_t *group;               // [n] rows of one prompt sample have one number
    const uint8_t *finished;            // [n]
    const float *score;                 // [n] mixed reward, after the response rules
    const float *token_reward;          // [total] mixed per-token rewards
    // [total] log-probs that the updates compare with: the sampler's or, with
    // RLHF_PLAN_RECOMPUTE_LOGP, those of a second forward. logp_ref is NULL unless
    // RLHF_PLAN_REFERENCE or RLHF_HEAD_KL is planned, value_old unless RLHF_HEAD_VALUE is.
    const float *logp_old, *logp_ref, *value_old;
    // out [total], zeroed: what loss() then finds under these names. returns is what a value head
    // learns to foretell; the host hands both on and keeps them in a rollout log, no more.
    // [R:advantages]
    float *advantage, *returns;
    // The phase's whole batch, which this may be one minibatch of.
    // [batch_n] what its rows are paid in all, score and token_reward; NULL: this rollout is it.
    const float *batch_score;
    int64_t batch_tokens; // its response tokens; 0: this rollout's
    uint32_t batch_n, reserved;
    const float *logp_sampled; // [total] what the sampler gave, whatever logp_old is
    // [n] optimiser steps that the weights which drew the row had behind them; `steps` minus it is
    // how stale the row is. Today a phase's rows are all drawn by the weights it begins with.
    const int64_t *version;
    int64_t steps;                 // that the policy's weights have behind them now
    uint8_t *use;                  // out [n], zeroed: enum rlhf_row_use of each row
    int64_t batch_finished_tokens; // those of batch_tokens whose rows are finished
    const int32_t *ids;            // [total] the tokens, prompts included
    // [n] the prompt's data row as JSON, len 0 when there is none: read it with "rlhf.row/0"
    // (service.h). NULL for rows of a file, of which their tokens are kept.
    const rlhf_str *meta;
    const int32_t *label; // [n] as in rlhf_loss_in
} rlhf_rollout;

typedef struct rlhf_loss_in {
    uint32_t size, n, total;
    uint32_t epoch, minibatch, reserved;
    int64_t batch_sequences; // of the whole minibatch this microbatch belongs to
    int64_t batch_tokens;    // its response tokens, without those of RLHF_ROW_MASKED rows and those
                             // that are left out
    int64_t max_new_tokens;
    const int32_t *offset, *prompt_len, *group;
    const rlhf_heads *heads; // what the training forward gave
    // [total] as in rlhf_rollout, also where they are NULL. For rows of a file, which nobody drew
    // or paid, logp_old, advantage and returns are zeros.
    const float *logp_old, *logp_ref, *value_old, *advantage, *returns;
    // [n] LABELLED: the row's label, from 0 up. PREFERENCES: 1 = the preferred one of its group, 0
    // = another. COMPLETIONS: 1 = wanted, 0 = not, -1 = another row's (RLHF_PLAN_MISMATCHED). Else
    // zeros.
    const int32_t *label;
    // Outputs of the score head, so that heads->score is [n, n_labels]: the number of labels; 1 for
    // a reward model; 0 when the model has no such head.
    int32_t n_labels, reserved2;
    // Minibatches of an epoch of this phase: fewer than planned where dropped rows leave too few.
    // 0: not said, as many as planned.
    int64_t minibatches;
    // As in rlhf_rollout; NULL and 0 for rows of a file, which nobody drew.
    const float *logp_sampled; // [total]
    const int64_t *version;    // [n]
    int64_t steps;
    // [total] 1: a response token that is no part of the loss, its derivatives 0. NULL: there are
    // none, as always without RLHF_PLAN_LEAVES_OUT. [R:left-out]
    const uint8_t *left_out;
    const int32_t *ids; // [total] the tokens, prompts included
    // [n] PREFERENCES: the margin of the data row, 0 where it has none; the same for all rows of a
    // group. NULL: no row has one, as always without RLHF_PLAN_MARGINS.
    const float *margin;
} rlhf_loss_in;

typedef struct rlhf_loss_out {
    uint32_t size, reserved;
    double loss; // out: this microbatch's share of the minibatch loss [R:finite]
    // [R:derivative] [R:loss-outside]
    rlhf_heads *d_heads; // zeroed arrays to fill: derivative of loss for each planned head
} rlhf_loss_out;

// What the optimiser step of a minibatch did.
typedef struct rlhf_step_info {
    uint32_t size;
    uint32_t epoch, minibatch; // as in rlhf_loss_in
    // 1: the loss or a gradient was not finite, and the weights are what they were; what loss()
    // said of this minibatch then describes no update.
    int32_t skipped;
    // Of the whole minibatch, what its microbatches gave, added up over all workers: all that is
    // in this struct is the same on each of them, and passes through no host->reduce.
    double loss;
    double grad_norm;         // L2 over the policy's gradients, before clipping; may be NaN or Inf
    double grad_norm_clipped; // after clipping; 0 when skipped
    // AdamW's rate for the policy, optim.lr times lr_factor, which is the schedule's. Matrices that
    // Muon moves have optim.muon_lr, value heads value.lr, times the same factor.
    double lr, lr_factor;
    int64_t steps; // that the policy's weights have behind them, this one included
} rlhf_step_info;

typedef struct rlhf_algo_ops {
    uint32_t size, flags;
    rlhf_status (*plan)(void *self, const rlhf_run_info *, rlhf_plan *out); // [main]
    rlhf_status (*advantages)(void *self, const rlhf_rollout *);            // [step]
    rlhf_status (*loss)(void *self, const rlhf_loss_in *, rlhf_loss_out *); // [step]
    // After the optimiser step of a minibatch. *stop (0 before) = 1 ends the phase's inner epochs;
    // all workers must decide alike. Optional. [step]
    rlhf_status (*minibatch_end)(void *self, const rlhf_step_info *, int32_t *stop);
    // Report the phase's metrics with host->metric; update controllers. The first phase is 0.
    // Optional. [step]
    rlhf_status (*phase_end)(void *self, uint64_t phase);
} rlhf_algo_ops;

#endif
