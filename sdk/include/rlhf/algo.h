// rlhf/algo.h: algorithm plugins. An algorithm declares its needs (plan) and turns rewards into
// advantages. From the heads, it computes a loss and the gradient of the loss by the heads. It sees
// only host arrays of per-token numbers, never a tensor; the host owns the loop.
//
// Plugin contract 1.0, frozen: it only grows.
//
// Calls to a rollout algorithm: plan() at the start of the run. Then in each phase:
//   choose_prompts .. advantages (once, or before each minibatch) .. per epoch, per minibatch: loss
//   (each microbatch) .. minibatch_end .. phase_end.
// Algorithms with any other source are supervised. Their plan() is called again when the run knows
// its rows. Their phases consist of loss, minibatch_end and phase_end. With
// RLHF_PLAN_RECOMPUTE_LOGP, advantages() is called first, on the whole batch.
//
// Log-probs, entropies and KLs are natural logarithms (nats).
//
// Rows of several turns (rlhf_run_info.max_turns above 1): algorithms see the prompt and the
// policy's tokens. Tokens that an environment wrote are in none of the arrays here, and `offset`
// and `total` do not count them. `turn` contains the turn in which the policy sampled each token.
//
// Numbers that advantages() computes for loss() travel with their rows and tokens: `advantage`,
// `returns`, and further doubles that the plan asks for (rlhf_plan.carry_rows, carry_tokens).
//
// The loss must not depend on the split into microbatches. So divide by the minibatch totals in
// rlhf_loss_in; the losses (and derivatives) of the microbatches then add up to those of the
// minibatch.
//
// With several workers, each worker's advantages() sees the same rows, but its loss() sees only
// some of the minibatch's microbatches. Sums accumulated in loss() must therefore be added up with
// host->reduce, in minibatch_end() or phase_end(), before they are used. [R:split]
#ifndef RLHF_ALGO_H
#define RLHF_ALGO_H

#include "heads.h"
#include "plugin.h"

// What a plan may request for each source of rows: heads; flags; epochs, minibatches and group
// size. The host rejects a plan that requests anything else, and names it in the message. [R:plan]
//
//   ROLLOUT      logp, entropy, kl, value    not MARGINS,  1 or more of each
//                                            MISMATCHED
//   TEXT         logp, entropy, kl           file flags    1 of each
//   LABELED      logp, entropy, kl, score    file flags    1 of each
//   PREFERENCES  logp, entropy, kl, score    file flags,   1 of each
//                                            MARGINS
//   COMPLETIONS  logp, entropy, kl           file flags,   1 of each
//                                            MISMATCHED
//
// An algorithm must have advantages() if its source is ROLLOUT, or if it sets the flag
// RECOMPUTE_LOGP. "File flags" are the flags that all sources other than ROLLOUT allow: REFERENCE,
// RECOMPUTE_LOGP, FULL_SUPPORT, UNIT_TEMPERATURE, WHOLE_GROUPS, LEAVES_OUT.
enum rlhf_source {
    RLHF_SOURCE_ROLLOUT = 1,
    RLHF_SOURCE_TEXT = 2,    // {"text"} or {"messages"} rows; prompt_len 1, or more with left_out
    RLHF_SOURCE_LABELED = 3, // {"text", "label"} rows
    // {"prompt", "chosen", "rejected"} or {"prompt", "responses", "best"} rows: each row becomes 2
    // or more sequences with the same group number; `label` is 1 for the preferred sequence and 0
    // for the others. A group is never split. With RLHF_HEAD_SCORE the model is a reward model, and
    // heads->score [n] contains the pooled reward of each response, after gain and bias.
    RLHF_SOURCE_PREFERENCES = 4,
    // {"prompt", "completion", "label"} rows. `label` is 1 for a desirable completion (true) and 0
    // for an undesirable one (false). Each row is a separate group.
    RLHF_SOURCE_COMPLETIONS = 5
};

enum rlhf_plan_flag {
    RLHF_PLAN_REFERENCE = 1,       // logp_ref is needed; RLHF_HEAD_KL provides it too
    RLHF_PLAN_MINIBATCH_SCOPE = 2, // advantages() is called for each minibatch, not for the batch
    // Take logp_old from an additional forward pass instead of the rollout. For rows of a file, the
    // host then also calls advantages(), with the whole batch, before the first loss().
    RLHF_PLAN_RECOMPUTE_LOGP = 4,
    RLHF_PLAN_FULL_SUPPORT = 8,      // log-probs over the full vocabulary even with top-k/top-p
    RLHF_PLAN_UNIT_TEMPERATURE = 16, // log-probs at temperature 1, not the sampling temperature
    // Groups must not be split over minibatches. The host rejects a run that would split one. A
    // microbatch may still have a part of a group: where it ends depends on
    // batch.microbatch_tokens.
    RLHF_PLAN_WHOLE_GROUPS = 32,
    // ROLLOUT: as WHOLE_GROUPS, and every call of loss() has all rows of its groups, except rows
    // that advantages() excluded. A group with more tokens than batch.microbatch_tokens fills a
    // microbatch alone.
    RLHF_PLAN_GROUPS_TOGETHER = 64,
    // loss() ignores the tokens marked in rlhf_loss_in.left_out. A user may restrict the loss to
    // some of a row's tokens (data.assistant_only) only if this flag is set.
    RLHF_PLAN_LEAVES_OUT = 128,
    // COMPLETIONS: each row is followed by a mismatched row of the same group. The mismatched row
    // has the same prompt, the completion of the previous row in the batch, and label -1. The first
    // mismatched row of the batch has the completion of the last row; in a batch of one row, it has
    // the completion of another row of the file. A mismatched row that is longer than the context
    // is cut at its end. An algorithm that does not need some of these rows marks them in
    // rlhf_advantages.use.
    RLHF_PLAN_MISMATCHED = 256,
    // PREFERENCES: loss() uses rlhf_loss_in.margin. Without this flag, a row with a margin is
    // rejected.
    RLHF_PLAN_MARGINS = 512,
    // ROLLOUT: a run without rewards is allowed; score and token_reward are then zeros. If this
    // flag is not set, a run without rewards is rejected.
    RLHF_PLAN_REWARDS_OPTIONAL = 1024,
    // ROLLOUT: advantages() uses each reward's own score (rlhf_rollout.reward_score). The host
    // rejects a run whose settings change the weighted sum of the rewards, because they would have
    // no effect on these scores: rewards.normalize, rewards.clip, and the penalties of response.*.
    RLHF_PLAN_EACH_REWARD = 2048,
    // ROLLOUT: rows may be sampled with older weights than the current ones (rlhf_rollout.version),
    // because the algorithm corrects for this. Without this flag, a run that samples ahead is
    // rejected.
    RLHF_PLAN_STALE = 4096
};

// The algorithm metrics that the host reads, in addition to the metric named by checkpoint.best.
// All are optional. (The host itself reports the responses' rewards as "objective/scores".) Later
// versions read further metrics only from algorithms that were built with these versions.
#define RLHF_METRIC_KL             "objective/kl"          // early_stop.kl, the progress line
#define RLHF_METRIC_LABEL_ACCURACY "classify/accuracy"     // the progress line, labeled rows
#define RLHF_METRIC_PAIR_ACCURACY  "reward_model/accuracy" // the progress line, preferences
// Share of groups whose rows all have the same reward. If it is 1 and the run has no critic, the
// host warns that the rewards give no learning signal.
#define RLHF_METRIC_FLAT_GROUPS "frac_reward_zero_std"

// How the updates use a row; set by advantages().
enum rlhf_row_use {
    RLHF_USE_TRAINS = 0,
    // loss() receives the row, but must give it a gradient of exactly zero. So the row is part of
    // the forward pass but not of the backward pass. If the gradient is not zero, the run ends with
    // RLHF_E_INTERNAL.
    RLHF_USE_NO_GRADIENT = 1, // [R:row-use]
    // The row is excluded from the loss: it is not part of the forward pass, and loss() does not
    // receive it. batch_tokens does not count its tokens, but batch_sequences counts the row.
    RLHF_USE_EXCLUDED = 2
};

// Properties of the run, for plan(). Read only.
typedef struct rlhf_run_info {
    uint32_t size;
    uint32_t batch_size;     // sequences per phase
    uint32_t max_new_tokens; // the most response tokens of a row, all turns together
    uint32_t max_turns;      // turns of the policy in a row; 0 or 1: rows are single responses
    uint32_t n_labels;       // for labeled rows; 0 = not known yet, or no labels
    uint32_t n_rewards;      // rewards that score the rows (rlhf_rollout.n_rewards)
    uint32_t shards;         // parts that a minibatch is divided into (shards.h); 0 = 1
    // How many phases ahead of training responses are sampled; 0: none. With 1, the rows of a phase
    // were sampled with the weights from the start of the previous phase. A later version may have
    // larger numbers.
    uint32_t ahead;
    int64_t phases;     // planned number of phases
    double temperature; // sampling temperature
} rlhf_run_info;

// Limits of a plan. They may become larger.
#define RLHF_NAMED_MAX 8  // names in `named`
#define RLHF_CARRY_MAX 16 // carry_rows, and carry_tokens

typedef struct rlhf_plan {
    uint32_t size;
    int32_t source;               // enum rlhf_source
    uint32_t heads;               // heads of the training forward, bits of enum rlhf_head
    uint32_t flags;               // bits of enum rlhf_plan_flag
    uint32_t epochs, minibatches; // per phase; both 1 for supervised algorithms
    uint32_t group_size;          // samples per prompt, 1 = no groups
    // Maximum number of resampling rounds in a phase. In a round, the host replaces groups whose
    // rows all have the same reward (with RLHF_PLAN_EACH_REWARD: of every reward) by responses to
    // further prompts. Only for groups of 2 or more. 0: never.
    uint32_t resample_rounds;
    // Doubles for each row and for each token that advantages() passes on to loss(), at most
    // RLHF_CARRY_MAX each (rlhf_advantages.carry_row, carry_token). Only if advantages() is called.
    uint32_t carry_rows, carry_tokens;
    uint32_t n_named;
    int32_t divergence; // enum rlhf_divergence (heads.h), of RLHF_HEAD_KL
    // [n_named] Further frozen models, in addition to the reference. The algorithm chooses their
    // names ("teacher"; at most 24 of a to z, digits and '_', but no name of the host such as
    // "policy", see base.h), and the user sets the directory of each (models.<name>). The host
    // loads each model, checks that its tokenizer is the policy's, plans its memory and passes its
    // log-probs as logp_named[i], where i is the name's place in this list. The list and its
    // strings must stay valid until the instance is destroyed. At most RLHF_NAMED_MAX names. NULL
    // if n_named is 0.
    const char *const *named;
    // RLHF_HEAD_KL compares the policy with the model of this name, which must be in `named`; NULL:
    // with the reference. The named model and the policy must use the same model plugin.
    const char *divergence_from;
    double divergence_beta; // of RLHF_DIVERGENCE_JS; otherwise 0
} rlhf_plan;

// A batch (or one minibatch) of finished rollouts, or a batch of rows of a file. Rows of a file are
// not sampled or rewarded: their score, token_reward and logp_sampled are 0. Arrays of numbers
// [total] are 0 on prompt tokens.
typedef struct rlhf_rollout {
    uint32_t size, n, total, max_new_tokens;
    int64_t phase; // the first is 0
    int64_t steps; // optimizer steps taken so far

    // ---- rows ----
    const int32_t *offset, *prompt_len; // [n + 1], [n]
    const int32_t *group;               // [n] rows of the same prompt sample share a number
    // [n] the row's index in the phase's batch; the same in every epoch, and in loss(). Without
    // RLHF_PLAN_MINIBATCH_SCOPE, row[i] is i.
    const uint32_t *row;
    const int32_t *label; // [n] as in rlhf_loss_in
    // [n] the row's origin; -1: unknown. For a response it is the prompt's index in rlhf_prompts,
    // which lists the prompts that the run uses. For a row of a file it is the number of the row in
    // the file, from 0; rows that the host leaves out are counted too.
    const int64_t *source;
    // [n] number of optimizer steps taken before the row was sampled; `steps` minus this number is
    // the row's staleness. At the start of a phase, the staleness is 0 unless the run samples ahead
    // (rlhf_run_info.ahead).
    const int64_t *version;
    const uint8_t *finished; // [n] 1 = ended by a stop token
    // [n] the prompt's data row as JSON, to be read with "rlhf.row/1" (service.h); len 0 if the
    // prompt comes without a data row. NULL for rows of a file, because only their tokens are kept.
    const rlhf_str *meta;

    // ---- tokens ----
    const int32_t *ids;  // [total] the tokens, prompts included
    const int32_t *turn; // [total] -1 on the prompt, then the turn from 0; NULL: one turn

    // ---- numbers ----
    const float *score;        // [n] mixed reward, after the response rules
    const float *token_reward; // [total] mixed per-token rewards
    // [total] logp_old: the denominator of the policy ratio, from the sampler or, with
    // RLHF_PLAN_RECOMPUTE_LOGP, from a second forward pass. logp_sampled: from the sampler, even if
    // logp_old differs. logp_ref: NULL unless the plan has RLHF_PLAN_REFERENCE, or has RLHF_HEAD_KL
    // and compares the policy with the reference. value_old: NULL unless the plan has
    // RLHF_HEAD_VALUE.
    const float *logp_old, *logp_sampled, *logp_ref, *value_old;
    const float *const *logp_named; // [n_named] each [total]: rlhf_plan.named; NULL without any

    // ---- each reward; NULL without RLHF_PLAN_EACH_REWARD ----
    // [n, n_rewards] the reward's own score of the row: its seq plus its token rewards, before the
    // weights. NaN: the reward could not score the row, and adds nothing to its score. The weighted
    // sum of a row is its score plus its token rewards. An environment that gives rewards is the
    // last one, named "environment".
    const float *reward_score;
    const double *reward_weight;    // [n_rewards] as in the settings
    const char *const *reward_name; // [n_rewards] as in the metrics

    // ---- the phase's whole batch; this rollout may be only one minibatch of it ----
    const float *batch_score;      // [batch_n] total rewards of its rows (score plus token_reward);
                                   // NULL: this rollout is the whole batch
    int64_t batch_tokens;          // its response tokens; 0: as in this rollout
    int64_t batch_finished_tokens; // of batch_tokens, those of finished rows
    uint32_t batch_n, n_rewards;
} rlhf_rollout;

// Results of advantages(). Every array is zeroed before the call, and all but `use` are passed on
// to loss() under the same names. The host writes `advantage` and `returns` to a rollout log, and
// uses them for nothing else. `returns` is the value head's regression target; an algorithm without
// a value head may use it as it likes. If an advantage or a return of a row is not finite, the host
// treats all rows of its group as RLHF_USE_EXCLUDED, and warns; without any other row it skips the
// update. Numbers on prompt tokens are ignored, also if they are not finite.
// [R:advantages]
typedef struct rlhf_advantages {
    uint32_t size, reserved;
    float *advantage, *returns; // [total]
    uint8_t *use;               // [n] enum rlhf_row_use
    // [n, rlhf_plan.carry_rows] and [total, rlhf_plan.carry_tokens], NULL if the plan has 0 of
    // them. Number k of row i is carry_row[i * carry_rows + k]. The host does not use them.
    double *carry_row, *carry_token;
} rlhf_advantages;

typedef struct rlhf_loss_in {
    uint32_t size, n, total;
    uint32_t epoch, minibatch;
    // Minibatches per epoch in this phase. There are fewer than planned if too few rows are left
    // after rows were dropped.
    uint32_t minibatches;
    // The part of the minibatch that this microbatch belongs to: a number below
    // rlhf_run_info.shards. Sums kept for each shard (shards.h) have the same bits for any number
    // of processes. [R:shards]
    uint32_t shard;
    // Number of outputs of the score head: the number of labels of a classifier, 1 for a reward
    // model, 0 without a score head. heads->score is [n, n_labels].
    uint32_t n_labels;
    uint32_t max_new_tokens, reserved;
    int64_t phase, steps;    // as in rlhf_rollout
    int64_t batch_sequences; // of the whole minibatch that contains this microbatch
    int64_t batch_tokens;    // its response tokens, without those of RLHF_USE_EXCLUDED rows and
                             // those marked in left_out

    // ---- rows ----
    const int32_t *offset, *prompt_len;
    // [n] as in rlhf_rollout. A microbatch may have only some rows of a group, also with
    // RLHF_PLAN_WHOLE_GROUPS; only GROUPS_TOGETHER and the source PREFERENCES keep groups together.
    const int32_t *group;
    const uint32_t *row; // [n] as in rlhf_rollout
    // [n] LABELED: the row's label, from 0 up. PREFERENCES: 1 = the preferred row of its group, 0
    // = any other row. COMPLETIONS: 1 = desirable, 0 = undesirable, -1 = mismatched
    // (RLHF_PLAN_MISMATCHED). Otherwise zeros.
    const int32_t *label;
    // [n] PREFERENCES: the margin of the data row, or 0 if the data row has no margin; the same for
    // all rows of a group. NULL if no data row has a margin, and always without RLHF_PLAN_MARGINS.
    const float *margin;
    const int64_t *source;  // [n] as in rlhf_rollout
    const int64_t *version; // [n] as in rlhf_rollout; NULL for rows of a file

    // ---- tokens ----
    const int32_t *ids;  // [total] the tokens, prompts included
    const int32_t *turn; // [total] as in rlhf_rollout
    // [total] 1: a response token excluded from the loss; its gradient must be 0. NULL if no token
    // is excluded, and always without RLHF_PLAN_LEAVES_OUT. [R:left-out]
    const uint8_t *left_out;

    // ---- numbers ----
    // Outputs of the training forward pass.
    const rlhf_head_values *heads;
    // [total] as in rlhf_rollout; an array that is NULL there is NULL here too. For rows of a file,
    // logp_sampled is NULL here (in rlhf_rollout, it is zeros), and logp_old, advantage and returns
    // are zeros unless the plan has RLHF_PLAN_RECOMPUTE_LOGP.
    const float *logp_old, *logp_sampled, *logp_ref, *value_old, *advantage, *returns;
    const float *const *logp_named; // [n_named] each [total], as in rlhf_rollout
    // [n, carry_rows] and [total, carry_tokens], as advantages() left them; NULL if the plan has 0
    const double *carry_row, *carry_token;
} rlhf_loss_in;

typedef struct rlhf_loss_out {
    uint32_t size, reserved;
    double loss; // out: this microbatch's share of the minibatch loss [R:finite]
    // zeroed arrays to fill: gradient of loss for each planned head. Derivatives on prompt tokens
    // are ignored, also if they are not finite. [R:derivative] [R:loss-outside]
    const rlhf_head_gradients *d_heads;
} rlhf_loss_out;

// Outcome of a minibatch's optimizer step.
typedef struct rlhf_step_info {
    uint32_t size;
    uint32_t epoch, minibatch; // as in rlhf_loss_in
    // 1: the loss or a gradient was not finite, so the weights were not updated. The numbers that
    // loss() computed for this minibatch then do not belong to an update.
    uint32_t skipped;
    int64_t phase; // as in rlhf_rollout
    int64_t steps; // optimizer steps taken so far, including this one
    // The minibatch loss: the sum over its microbatches on all workers. Every field of this struct
    // is already the same on all workers; do not pass it through host->reduce.
    double loss;
    double grad_norm;         // L2 over the policy's gradients, before clipping; may be NaN or Inf
    double grad_norm_clipped; // after clipping; 0 when skipped
    // lr: AdamW's learning rate for the policy, which is optim.lr times lr_factor. lr_factor: the
    // schedule's factor. It also multiplies optim.muon_lr (for matrices trained with Muon) and
    // value.lr (for value heads).
    double lr, lr_factor;
} rlhf_step_info;

// What the algorithm decides after a step.
typedef struct rlhf_step_out {
    uint32_t size;
    int32_t stop; // 0 before the call; 1: end the phase's epochs. All workers must decide alike.
} rlhf_step_out;

// What the host measured in a phase. Every number but the seconds is the same on all workers.
typedef struct rlhf_phase_info {
    uint32_t size;
    uint32_t n;          // rows of the phase's batch
    int64_t phase;       // as in rlhf_rollout
    int64_t phases;      // planned number of phases
    int64_t steps;       // optimizer steps taken so far
    int64_t phase_steps; // of these, those of this phase
    int64_t skipped;     // steps of this phase that were skipped (rlhf_step_info.skipped)
    int64_t tokens;      // response tokens of the batch
    double loss;         // mean of the minibatches' losses
    // The mean and the standard deviation (divisor n) of the rows' total rewards: score plus token
    // rewards. 0 for rows of a file.
    double score, score_std;
    // The mean over the rows of the sum of logp_old - logp_ref over their response tokens. NaN for
    // rows of a file, and without logp_ref.
    double kl;
    // Seconds of this process. They differ between runs, so results must not depend on them.
    double rollout_seconds, reward_seconds, reference_seconds, update_seconds;
} rlhf_phase_info;

// The prompts of a run, for choose_prompts().
typedef struct rlhf_prompts {
    uint32_t size;
    uint32_t n_choose; // prompts that the next phase needs
    int64_t n;         // prompts of the run
    int64_t phase;     // the phase that the chosen prompts are for
    // [n] the mean reward (score plus token rewards) of the responses when the prompt was last
    // used; NaN if the prompt was not used yet. The host keeps last_score and seen in its
    // checkpoints.
    const float *last_score;
    const int64_t *seen; // [n] number of phases that used the prompt
    // [n] the data rows as JSON, as in rlhf_rollout
    const rlhf_str *meta;
} rlhf_prompts;

// The prompts that an algorithm chooses.
typedef struct rlhf_choice {
    uint32_t size, reserved;
    // out [n_choose] indices of prompts, each at least 0 and below rlhf_prompts.n; an index may be
    // repeated. -1 before the call. [R:choose]
    int64_t *prompt;
} rlhf_choice;

typedef struct rlhf_algo_ops {
    uint32_t size;
    uint32_t flags; // no flag is defined; must be 0
    rlhf_status (*plan)(void *self, const rlhf_run_info *, rlhf_plan *out);            // [main]
    rlhf_status (*advantages)(void *self, const rlhf_rollout *, rlhf_advantages *out); // [step]
    rlhf_status (*loss)(void *self, const rlhf_loss_in *, rlhf_loss_out *out);         // [step]
    // Called after a minibatch's optimizer step. Optional. [step]
    rlhf_status (*minibatch_end)(void *self, const rlhf_step_info *, rlhf_step_out *out);
    // Report the phase's metrics with host->metric; update controllers. Optional. [step]
    rlhf_status (*phase_end)(void *self, const rlhf_phase_info *);
    // Choose the prompts of the next phase. The host calls this once before each phase, and again
    // in the same phase for each round of resample_rounds. save() must include the state that this
    // function changes. NULL: the host uses the prompts in its shuffled order. Optional, for
    // RLHF_SOURCE_ROLLOUT. [step]
    rlhf_status (*choose_prompts)(void *self, const rlhf_prompts *, rlhf_choice *out);
} rlhf_algo_ops;

#endif
