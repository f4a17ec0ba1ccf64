// rows.h: a ragged batch of sequences with everything known about them. Rollouts make the rows,
// rewards score them, and minibatches are cut from them. Supervised batches use the same type.
//
// The layout is flat, without padding: ids[total], offset[n + 1] and per-token arrays. A batch
// holds only numbers; no model runs here.
#ifndef RLHF_HOST_BATCH_ROWS_H
#define RLHF_HOST_BATCH_ROWS_H

#include "base/error.h"

#include <rlhf/algo.h>
#include <rlhf/model.h>

// The per-token float arrays, in the order of rlhf__rows.token. They are 0 for tokens that the
// policy did not write.
enum rlhf__token_array {
    RLHF__TOKEN_REWARD = 0,
    RLHF__LOGP_OLD = 1,
    RLHF__LOGP_REF = 2,
    RLHF__VALUE_OLD = 3,
    RLHF__ADVANTAGE = 4,
    RLHF__RETURNS = 5,
    RLHF__LOGP_SAMPLED = 6, // LOGP_OLD as the rollout set it
    RLHF__N_TOKEN_ARRAYS = 7
};

// How rows belong together.
enum rlhf__rows_flag {
    RLHF__SHARE_PROMPTS = 1, // adjacent rows of a group may have the same prompt: compute it once
    RLHF__WHOLE_GROUPS = 2,  // never split a group over microbatches
    RLHF__DRAWN = 4          // sampled from a policy: version and RLHF__LOGP_SAMPLED are set
};

struct rlhf__rows {
    uint32_t n, total;
    int32_t *ids;        // [total]
    int32_t *offset;     // [n + 1]
    int32_t *prompt_len; // [n]
    int32_t *group;      // [n]
    int32_t *label;      // [n]
    // [n] the prompt that the row responds to, numbered as in rlhf__prompts_get. Rows of a file
    // have their row number in the file, which also counts rows that were left out.
    int64_t *source;
    int64_t *version;                   // [n] optimiser steps of the weights that sampled it
    uint8_t *finished;                  // [n] 1 = ended by a stop token
    uint8_t *use;                       // [n] enum rlhf_row_use, set by the algorithm
    float *score;                       // [n] reward at the end of a row
    float *reward;                      // [n] total reward: score and token rewards
    float *token[RLHF__N_TOKEN_ARRAYS]; // [total] each
    // The reference's hidden states, if a head needs them. They are either on the host
    // (rlhf_forward.kl_hidden, [total, d_hidden]), or on the device, found by row number
    // (kl_dev_hidden, kl_dev_row). Device states are borrowed; batches picked from this one share
    // them.
    float *ref_hidden;
    rlhf_dev ref_dev_hidden;
    int32_t *ref_row; // [response tokens], rows one after the other
    int32_t d_hidden;
    uint32_t flags;         // bits of enum rlhf__rows_flag
    uint32_t *support;      // [response tokens, support_words], rows one after the other: what each
    uint32_t support_words; // was sampled from (rlhf_forward.support); NULL: the whole vocabulary
    uint32_t reserved;
    // [total] 1 = a response token outside the loss (rlhf_loss_in.left_out); NULL: none.
    uint8_t *left_out;
    float *margin; // [n] of preferences (rlhf_loss_in.margin); NULL: no margins
    // [total] who wrote each token, as in rlhf_batch.turn: -1 = not the policy, k >= 0 = the policy
    // in its turn k. NULL: every token from prompt_len on belongs to turn 0, here and in models.
    int32_t *turn;
    uint8_t *end; // [n] enum rlhf_episode_end; NULL without turns
    // [n_named] each [total]: log-probs of the plan's named models; n_named 0: none
    float *named[RLHF_NAMED_MAX];
    uint32_t n_named, unused;
};

// Allocate zeroed arrays for n rows of total tokens (both may be 0) in a zeroed or finished *e. The
// caller fills in the rows, offset included. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_init(struct rlhf__rows *e, uint32_t n, uint32_t total,
                            struct rlhf__error *err);
void rlhf__rows_finish(struct rlhf__rows *e); // accepts a zeroed struct [any]

// dst = the rows pick[0..n) of src, in that order. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_pick(struct rlhf__rows *dst, const struct rlhf__rows *src,
                            const uint32_t *pick, uint32_t n, struct rlhf__error *err);

// dst = the rows of a, then those of b; b's group numbers continue after a's. Neither may have
// reference states or named models' log-probs. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_join(struct rlhf__rows *dst, const struct rlhf__rows *a,
                            const struct rlhf__rows *b, struct rlhf__error *err);

// Add zeroed supports over n_vocab ids; offset must be set. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_add_support(struct rlhf__rows *e, int32_t n_vocab, struct rlhf__error *err);

// Add a zeroed left_out. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_add_left_out(struct rlhf__rows *e, struct rlhf__error *err);
// The same for margins, initialised to 0. [any]
rlhf_status rlhf__rows_add_margins(struct rlhf__rows *e, struct rlhf__error *err);
// Arrays for the log-probs of n named models, 0 everywhere. [any]
rlhf_status rlhf__rows_add_named(struct rlhf__rows *e, uint32_t n, struct rlhf__error *err);

// Prepare rows for several turns: mark every token as given (-1) and every end as OPEN. Set
// prompt_len before the rows are used. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_add_turns(struct rlhf__rows *e, struct rlhf__error *err);

// 1 if the policy wrote token t, that is, if t is a response token. t counts from the first token
// of e and must not be in a prompt. [any]
static inline int rlhf__rows_is_response(const struct rlhf__rows *e, int32_t t) {
    return !e->turn || e->turn[t] >= 0;
}

// Where row i's last turn begins, counted from the row's first token; *end = the token after it.
// With one turn these are prompt_len and the row's length. For a row without a response both are
// its length. [any]
int32_t rlhf__rows_last_turn(const struct rlhf__rows *e, uint32_t i, int32_t *end);

// Response tokens of rows [from, to) that are not left out. [any]
int64_t rlhf__rows_loss_tokens(const struct rlhf__rows *e, uint32_t from, uint32_t to);

// The supports from row `from` on, or NULL. [any]
uint32_t *rlhf__rows_support(const struct rlhf__rows *e, uint32_t from);

// Use the reference's hidden states on the device at `hidden`, one per response token; offset must
// be set. Borrowed. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_refer(struct rlhf__rows *e, rlhf_dev hidden, struct rlhf__error *err);

// Response tokens (rlhf__rows_is_response) of rows [from, to). [any]
int64_t rlhf__rows_response_tokens(const struct rlhf__rows *e, uint32_t from, uint32_t to);

// End of the adjacent rows of row i's group, starting at i. [any]
uint32_t rlhf__rows_group_end(const struct rlhf__rows *e, uint32_t i);

// 1 if rows [from, to) all have the same reward, with score and token rewards added up as
// algorithms add them. [any]
int rlhf__rows_flat(const struct rlhf__rows *e, uint32_t from, uint32_t to);

// 1 if row i > 0 has the group and the prompt of row i - 1, and the prompt has at least 2 tokens.
// Turns do not matter, because the policy writes no prompt. [any]
int rlhf__rows_same_prompt(const struct rlhf__rows *e, uint32_t i);

// End of the microbatch that starts at row `from`. It takes as many whole rows as fit in max_tokens
// (whole groups with RLHF__WHOLE_GROUPS), but at least one; max_tokens 0 takes all. With `share`,
// adjacent rows with the same prompt count it once. Only rows `from` and later matter. [any]
uint32_t rlhf__rows_slice_end(const struct rlhf__rows *e, uint32_t from, int64_t max_tokens,
                              int share);

// Tokens (shared prompts counted in each row) and rows of the largest microbatch for max_tokens.
// [any]
void rlhf__rows_largest_slice(const struct rlhf__rows *e, int64_t max_tokens, int share,
                              uint32_t *rows, uint32_t *tokens);

// A view of rows [from, to): offsets are rebased into offset[to - from + 1], all other pointers
// point into e. [any]
rlhf_batch rlhf__rows_batch(const struct rlhf__rows *e, uint32_t from, uint32_t to,
                            int32_t *offset);

#endif
