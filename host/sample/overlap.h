// overlap.h: scores finished rows of a batch on a separate thread while the others are still being
// sampled (rewards.overlap). The answers are kept until the batch is scored: reward_ask.h then
// scores the remaining rows and handles failures. Scores do not depend on when a row was scored.
//
// Only rewards with RLHF_REWARD_EXTERNAL are called this way. They must not keep state, which the
// order of calls could change, or need log-probs, which exist only when all rows are finished.
#ifndef RLHF_HOST_OVERLAP_H
#define RLHF_HOST_OVERLAP_H

#include "sample/reward_ask.h"

struct rlhf__overlap;

struct rlhf__overlap_request {
    const struct rlhf__config *config;
    struct rlhf__instance *const *rewards; // [config->n_reward]
    struct rlhf__scored_by by;
    int64_t phase;
    // receives failures after the first one, which is reported when the batch is scored
    struct rlhf__log *log;
    uint32_t n, group; // rows of the batch; rows per call
};

// A finished row; the arrays are borrowed until the call returns.
struct rlhf__overlap_row {
    uint32_t row; // of the batch
    int32_t prompt_len, response_len;
    int32_t finished;
    int64_t source; // its prompt
    const int32_t *prompt, *response;
};

// 1 if the reward may be called so. [any]
int rlhf__overlap_allowed(const struct rlhf__instance *reward);

// *out = NULL if no reward of the request may be called so. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__overlap_create(const struct rlhf__overlap_request *q, struct rlhf__overlap **out,
                                 struct rlhf__error *err);

// Add a finished row. It is scored once its group is complete, or at once with
// RLHF_REWARD_ROW_ALONE. If memory runs out it is scored later, with the batch. [main]
void rlhf__overlap_add(struct rlhf__overlap *a, const struct rlhf__overlap_row *row);

// Reward k's answers so far, after waiting for the thread. NULL: it was not called. Borrowed.
// [main]
struct rlhf__overlap_answers *rlhf__overlap_take(struct rlhf__overlap *a, size_t k);

void rlhf__overlap_destroy(struct rlhf__overlap *a); // waits for the thread; NULL allowed [main]

#endif
