// reward_rows.h: rows in the form that reward plugins get, and one reward's answers for them. The
// rows are a batch or a part of a batch. Each row is cut after the last token that is scored.
#ifndef RLHF_HOST_SAMPLE_REWARD_ROWS_H
#define RLHF_HOST_SAMPLE_REWARD_ROWS_H

#include "batch/rows.h"
#include "config/schema.h"
#include "data/prompts.h"
#include "sample/response_rules.h"
#include "sample/turn_texts.h"

#include <rlhf/reward.h>

// The scored texts of a batch. In rows of several turns, `response` is the last turn.
struct rlhf__scored {
    rlhf_str *prompt, *response, *meta; // [n]; response owned, the others borrowed
    char **text;                        // [n] owned bytes of the responses
    int32_t *scored_len;                // [n] tokens after the prompt that are scored
    uint8_t *no_period;                 // [n] 1 = the response lacks a period
    uint8_t *verdict; // [n] enum rlhf_verdict, over all rewards; none until rlhf__score
    float *paid;      // [n * n_rewards] each reward's score of each row; NULL: not known
    struct rlhf__turn_texts *turns; // [n] further texts; NULL: rows of one turn
    uint32_t n, n_rewards;
};

// The rules that cut the texts, and the prompt set that e->source refers to; all borrowed.
struct rlhf__scored_by {
    const struct rlhf__response_config *response;
    const struct rlhf__response_rules *rules;
    const struct rlhf__prompts *prompts;
};

// Decode and cut the responses of e. Release with rlhf__scored_finish. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__scored_init(struct rlhf__scored *, const struct rlhf__scored_by *,
                              const struct rlhf__rows *e, struct rlhf__error *err);
void rlhf__scored_finish(struct rlhf__scored *); // accepts a zeroed struct [any]

// Append the texts of b to those of a. Afterwards b is empty. If RLHF_E_NOMEM is returned, both are
// unchanged. [any]
rlhf_status rlhf__scored_join(struct rlhf__scored *a, struct rlhf__scored *b,
                              struct rlhf__error *err);

// Store each reward's scores. They are in raw[n_rewards * n], in the layout of rlhf__score. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__scored_take_paid(struct rlhf__scored *, const float *raw, uint32_t n_rewards,
                                   struct rlhf__error *err);

// Keep only the rows pick[0..n), ascending. [any]
void rlhf__scored_pick(struct rlhf__scored *, const uint32_t *pick, uint32_t n);

// Returns the share of right answers among the rows that have a verdict and keep[i] != 0, or NaN
// without such rows. [any]
double rlhf__scored_correct(const struct rlhf__scored *, const uint8_t *keep);

// Rows in the form that reward plugins get. All arrays are owned; the texts belong to a struct
// rlhf__scored. Zero-initialize; release with rlhf__reward_rows_finish, even after a failure. A row
// of several turns is whole here; reward_view.h selects the part that a reward sees.
struct rlhf__reward_rows {
    uint32_t n;
    rlhf_str *prompt, *response, *meta; // [n]
    int32_t *ids;                       // [offset[n]]
    int32_t *offset;                    // [n + 1]
    int32_t *prompt_len, *group;        // [n]
    int64_t *source;                    // [n]
    float *logp_sampled, *logp_ref;     // [offset[n]] NULL: not given
    uint8_t *finished;                  // [n]
    // The members below are NULL for rows of one turn.
    int32_t *turn;                         // [offset[n]]
    uint8_t *end;                          // [n]
    const struct rlhf__turn_texts **texts; // [n] borrowed
};

// Make the rows of a batch, with the log-probs that the rewards' flags ask for
// (RLHF_REWARD_LOGP_*). The batch must have these log-probs. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_rows_init(struct rlhf__reward_rows *r, const struct rlhf__scored *x,
                                   const struct rlhf__rows *e, uint32_t flags,
                                   struct rlhf__error *err);

// Make a copy of the rows pick[0..n) of `all`, in that order. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_rows_pick(struct rlhf__reward_rows *r, const struct rlhf__reward_rows *all,
                                   const uint32_t *pick, uint32_t n, struct rlhf__error *err);
void rlhf__reward_rows_finish(struct rlhf__reward_rows *r); // accepts a zeroed struct [any]

// One reward's answers for rows. All arrays are owned. Zero-initialize; release with
// rlhf__reward_answer_finish, even after a failure.
struct rlhf__reward_answer {
    float *seq;       // [n] NaN without an answer
    float *token;     // [offset[n]] one per token of the rows; 0 without token rewards
    uint8_t *verdict; // [n] enum rlhf_verdict
    uint8_t *failed;  // [n] 1 = the row could not be scored; ignore its other answers
};

// Allocate empty answers for r. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_answer_init(struct rlhf__reward_answer *a,
                                     const struct rlhf__reward_rows *r, struct rlhf__error *err);
void rlhf__reward_answer_finish(struct rlhf__reward_answer *a); // accepts a zeroed struct [any]

// Make all answers empty. [any]
void rlhf__reward_answer_clear(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r);

// Returns 1 if the reward has not written a->seq of row i. [any]
int rlhf__reward_answer_unwritten(const struct rlhf__reward_answer *a, uint32_t i);

// Discard the answer for row i. [any]
void rlhf__reward_answer_void(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r,
                              uint32_t i);

// Copy one answer from `part` to `a`. In `part`, it is the answer for row k of `of`; in `a`, it
// becomes the answer for row i of `r`. The two must be the same row. [any]
void rlhf__reward_answer_take(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r,
                              uint32_t i, const struct rlhf__reward_answer *part,
                              const struct rlhf__reward_rows *of, uint32_t k);

// Returns row i's total reward: seq plus the rewards of its response tokens. [any]
float rlhf__reward_answer_paid(const struct rlhf__reward_answer *a,
                               const struct rlhf__reward_rows *r, uint32_t i);

#endif
