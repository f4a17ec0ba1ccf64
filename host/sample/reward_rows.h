// reward_rows.h: rows as reward plugins see them, and one reward's answers. Each row ends where
// scoring ends. Holds a batch, or some of its rows.
#ifndef RLHF_HOST_REWARD_ROWS_H
#define RLHF_HOST_REWARD_ROWS_H

#include "sample/scored.h"

#include <rlhf/reward.h>

// All arrays are owned; the texts are those of a struct rlhf__scored. Zero-initialise; release with
// rlhf__reward_rows_finish, also after a failure.
struct rlhf__reward_rows {
    uint32_t n, reserved;
    rlhf_str *prompt, *response, *meta; // [n]
    int32_t *ids;                       // [offset[n]]
    int32_t *offset;                    // [n + 1]
    int32_t *prompt_len, *group;        // [n]
    int64_t *source;                    // [n]
    float *logp_sampled, *logp_ref;     // [offset[n]] NULL: not given
    uint8_t *finished;                  // [n]
};

// All rows of a batch. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_rows_init(struct rlhf__reward_rows *r, const struct rlhf__scored *x,
                                   const struct rlhf__rows *e, struct rlhf__error *err);

// The rows pick[0..n) of `all`, in that order. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_rows_pick(struct rlhf__reward_rows *r, const struct rlhf__reward_rows *all,
                                   const uint32_t *pick, uint32_t n, struct rlhf__error *err);
void rlhf__reward_rows_finish(struct rlhf__reward_rows *r); // accepts a zeroed one [any]

// One reward's answers for rows; all arrays owned. Zero-initialise; release with
// rlhf__reward_answer_finish, also after a failure.
struct rlhf__reward_answer {
    float *seq;       // [n] NaN without an answer
    float *token;     // [offset[n]] laid out as the rows; 0 without per-token rewards
    uint8_t *verdict; // [n] enum rlhf_verdict
    uint8_t *failed;  // [n] 1 = it could not score the row; its other answers for the row are
                      // ignored
};

// Allocate empty answers for r. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__reward_answer_init(struct rlhf__reward_answer *a,
                                     const struct rlhf__reward_rows *r, struct rlhf__error *err);
void rlhf__reward_answer_finish(struct rlhf__reward_answer *a); // accepts a zeroed one [any]

// Make all answers empty. [any]
void rlhf__reward_answer_clear(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r);

// 1 if out->seq of row i is still empty. [any]
int rlhf__reward_answer_unwritten(const struct rlhf__reward_answer *a, uint32_t i);

// Void the answer for row i. [any]
void rlhf__reward_answer_void(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r,
                              uint32_t i);

// Copy the answer for row k of `part` to row i of `r`, which is the same row. [any]
void rlhf__reward_answer_take(struct rlhf__reward_answer *a, const struct rlhf__reward_rows *r,
                              uint32_t i, const struct rlhf__reward_answer *part,
                              const struct rlhf__reward_rows *of, uint32_t k);

// Row i's total reward: seq and its response tokens' rewards. [any]
float rlhf__reward_answer_paid(const struct rlhf__reward_answer *a,
                               const struct rlhf__reward_rows *r, uint32_t i);

#endif
