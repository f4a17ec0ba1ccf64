// rows.h: a ragged batch of sequences with all their data. Rollouts make the rows, rewards score
// them, and minibatches are cut from them. Supervised batches use the same type.
//
// The layout is flat, without padding: ids[total], offset[n + 1] and per-token arrays. A batch
// contains only numbers; no model runs here.
#ifndef RLHF_HOST_BATCH_ROWS_H
#define RLHF_HOST_BATCH_ROWS_H

#include "base/error.h"

#include <rlhf/algo.h>
#include <rlhf/model.h>

// The per-token float arrays, in the order of rlhf__rows.token. Entries of tokens that the policy
// did not write are 0.
enum rlhf__token_array {
    RLHF__TOKEN_REWARD = 0,
    RLHF__LOGP_OLD = 1,
    RLHF__LOGP_REF = 2,
    RLHF__VALUE_OLD = 3,
    RLHF__ADVANTAGE = 4,
    RLHF__RETURNS = 5,
    RLHF__LOGP_SAMPLED = 6, // RLHF__LOGP_OLD as the rollout set it
    RLHF__N_TOKEN_ARRAYS = 7
};

// Flags of a batch.
enum rlhf__rows_flag {
    RLHF__SHARE_PROMPTS = 1, // adjacent rows of a group may have the same prompt: compute it once
    RLHF__WHOLE_GROUPS = 2,  // never split a group between microbatches
    RLHF__DRAWN = 4          // sampled from a policy: version and RLHF__LOGP_SAMPLED are set
};

// Every array for rows or tokens is a column of the table in row_columns.c.
struct rlhf__rows {
    uint32_t n, total;
    uint32_t flags; // bits of enum rlhf__rows_flag
    int32_t d_hidden;
    uint32_t support_words, n_named;
    uint32_t n_rewards, carry_rows, carry_tokens, spare;
    int32_t *ids;        // [total]
    int32_t *offset;     // [n + 1]
    int32_t *prompt_len; // [n]
    int32_t *group;      // [n]
    uint32_t *row;       // [n] index in the phase's batch, from rlhf__rows_number
    int32_t *label;      // [n]
    // [n] index of the prompt that the row responds to, as in rlhf__prompts_get. For a row of a
    // data file, it is the row's number in the files; rows that were left out are counted too.
    int64_t *source;
    int64_t *version;  // [n] optimizer steps of the policy that sampled the row
    uint8_t *finished; // [n] 1 = ended by a stop token
    uint8_t *use;      // [n] enum rlhf_row_use, set by the algorithm
    // [n, n_rewards] each reward's own score, NaN where it is missing (rlhf_rollout.reward_score);
    // NULL: the algorithm does not use them
    float *reward_score;
    // [n, carry_rows] and [total, carry_tokens] numbers of the algorithm (rlhf_advantages); NULL:
    // none
    double *carry_row, *carry_token;
    float *score;                       // [n] reward at the end of a row
    float *reward;                      // [n] total reward: score and token rewards
    float *token[RLHF__N_TOKEN_ARRAYS]; // [total] each
    // The reference's hidden states, if a head needs them. In host memory, they are ref_hidden
    // [total, d_hidden]. On the device, the state of response token k is row ref_row[k] of
    // ref_dev_hidden. These three members become kl_hidden, kl_dev_row and kl_dev_hidden of
    // rlhf_forward. States on the device are borrowed: a batch of rows that are picked from this
    // batch uses the same device memory.
    float *ref_hidden;
    rlhf_dev ref_dev_hidden;
    int32_t *ref_row; // [response tokens], one row after the other
    // [response tokens, support_words] the set of ids that each token was sampled from
    // (rlhf_forward.support); NULL: all ids
    uint32_t *support;
    // [total] 1 = a response token that is not in the loss (rlhf_loss_in.left_out); NULL: every
    // response token is in the loss.
    uint8_t *left_out;
    float *margin; // [n] for preferences (rlhf_loss_in.margin); NULL: no margins
    // [total] who wrote each token, as in rlhf_batch.turn: -1 = not the policy; k >= 0 = the
    // policy, in its turn k. NULL, here and in rlhf_batch, means that all tokens from prompt_len
    // onward are turn 0. Per-token arrays are 0 on tokens that the policy did not write, so sums
    // over a response need not look at turns.
    int32_t *turn;
    uint8_t *end; // [n] enum rlhf_episode_end; NULL without turns
    // `paid` [total] has an environment's rewards, each on the last token of its turn. `verdict`
    // [n] has the environment's verdict on each row (enum rlhf_verdict). Both are NULL without
    // turns.
    float *paid;
    uint8_t *verdict;
    // [n_named][total] log-probs under the models that the plan names; n_named may be 0
    float *named[RLHF_NAMED_MAX];
};

// Allocate zeroed arrays for n rows with `total` tokens (both may be 0) in *e, which must be zeroed
// or released. The caller fills in the rows, including `offset`. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_init(struct rlhf__rows *e, uint32_t n, uint32_t total,
                            struct rlhf__error *err);
void rlhf__rows_finish(struct rlhf__rows *e); // accepts a zeroed struct [any]

// Set `dst` to a copy of the rows pick[0..n) of `src`, in that order. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_pick(struct rlhf__rows *dst, const struct rlhf__rows *src,
                            const uint32_t *pick, uint32_t n, struct rlhf__error *err);

// Set `dst` to the rows of `a`, followed by the rows of `b`. The groups of `b` are renumbered so
// that they follow those of `a`. Neither batch may have hidden states of the reference or log-probs
// of named models. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_join(struct rlhf__rows *dst, const struct rlhf__rows *a,
                            const struct rlhf__rows *b, struct rlhf__error *err);

// Add zeroed supports over n_vocab ids. `offset` must be set before. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_add_support(struct rlhf__rows *e, int32_t n_vocab, struct rlhf__error *err);

// Add a zeroed column that not every batch has: `member` is the offset of its pointer, which must
// be NULL (row_columns.h). Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_add(struct rlhf__rows *e, size_t member, struct rlhf__error *err);
#define RLHF__ROWS_ADD(e, member, err) rlhf__rows_add(e, offsetof(struct rlhf__rows, member), err)

// Add zeroed arrays for the log-probs of n named models. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_add_named(struct rlhf__rows *e, uint32_t n, struct rlhf__error *err);

// Allocate the members that rows of several turns need. At first every token has turn -1 (not
// written by the policy), every row's end is OPEN, and the environment's rewards are 0. Set
// prompt_len before the rows are used. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_add_turns(struct rlhf__rows *e, struct rlhf__error *err);

// Number the rows from 0. Batches that are picked from e keep the numbers. [any]
void rlhf__rows_number(struct rlhf__rows *e);

// Returns 1 if the policy wrote token t, so that t is a response token. t is an index into e->ids
// and must not be in a prompt. [any]
static inline int rlhf__rows_is_response(const struct rlhf__rows *e, int32_t t) {
    return !e->turn || e->turn[t] >= 0;
}

// Returns the sum of `x` over row i's response tokens, or the sum of `x` - `less` if `less` is not
// NULL. `x` and `less` are arrays of all tokens. [any]
static inline double rlhf__rows_response_sum(const struct rlhf__rows *e, uint32_t i, const float *x,
                                             const float *less) {
    double sum = 0;
    for (int32_t t = e->offset[i] + e->prompt_len[i]; t < e->offset[i + 1]; t++)
        if (rlhf__rows_is_response(e, t))
            sum += less ? (double)x[t] - (double)less[t] : (double)x[t];
    return sum;
}

// Returns the index of the first token of row i's last turn, and sets *end to the index after that
// turn. Both indices are counted from the row's first token. If the row has one turn, they are
// prompt_len and the row's length. If the row has no response, both are the row's length. [any]
int32_t rlhf__rows_last_turn(const struct rlhf__rows *e, uint32_t i, int32_t *end);

// Returns the number of response tokens of rows [from, to) that are in the loss. [any]
int64_t rlhf__rows_loss_tokens(const struct rlhf__rows *e, uint32_t from, uint32_t to);

// Returns the supports from row `from` onward, or NULL if the batch lacks supports. [any]
uint32_t *rlhf__rows_support(const struct rlhf__rows *e, uint32_t from);

// Let e refer to the reference's hidden states at `hidden` on the device, one for each response
// token. The states are borrowed. e->offset must be set. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_refer(struct rlhf__rows *e, rlhf_dev hidden, struct rlhf__error *err);

// Returns the number of response tokens (rlhf__rows_is_response) of rows [from, to). [any]
int64_t rlhf__rows_response_tokens(const struct rlhf__rows *e, uint32_t from, uint32_t to);

// Returns the first index after i whose row is not in row i's group, or e->n. [any]
uint32_t rlhf__rows_group_end(const struct rlhf__rows *e, uint32_t i);

// Returns 1 if rows [from, to) all have the same reward, but for a few roundings of f32 (common/
// advantage.h of the algorithms judges alike). A row's reward is its score plus its token rewards,
// added in f64 and in order, as in algorithms. If the rows have each reward's own score
// (reward_score), each reward must give all rows the same score. [any]
int rlhf__rows_flat(const struct rlhf__rows *e, uint32_t from, uint32_t to);

// Returns 1 if row i (i > 0) has the same group and prompt as row i - 1, and the prompt has at
// least 2 tokens. [any]
int rlhf__rows_same_prompt(const struct rlhf__rows *e, uint32_t i);

// Returns the end of the microbatch that starts at row `from`. The microbatch has as many whole
// rows as fit in max_tokens or, with RLHF__WHOLE_GROUPS, as many whole groups, but at least one. If
// max_tokens is 0, the number of tokens is unlimited. If `share` is 1, a prompt that adjacent rows
// have in common is counted once. The result does not depend on the rows before `from`. [any]
uint32_t rlhf__rows_slice_end(const struct rlhf__rows *e, uint32_t from, int64_t max_tokens,
                              int share);

// Cut the batch into microbatches with rlhf__rows_slice_end. Sets *rows to the largest number of
// rows in a microbatch, and *tokens to the largest number of tokens. For *tokens, a shared prompt
// is counted in each row. [any]
void rlhf__rows_largest_slice(const struct rlhf__rows *e, int64_t max_tokens, int share,
                              uint32_t *rows, uint32_t *tokens);

// Returns a view of rows [from, to). Offsets are rebased into offset[to - from + 1]; all other
// pointers point into e. [any]
rlhf_batch rlhf__rows_batch(const struct rlhf__rows *e, uint32_t from, uint32_t to,
                            int32_t *offset);

#endif
