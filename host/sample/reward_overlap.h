// reward_overlap.h: scores the finished rows of a batch on a separate thread while other rows are
// still being sampled (rewards.overlap). The answers are kept until the batch is scored;
// reward_ask.h then scores the remaining rows and handles failures. The score of a row does not
// depend on when the row is scored.
//
// A reward is called during sampling only if it has RLHF_REWARD_EXTERNAL, keeps no state and needs
// no log-probs. (The order of the calls could change a state, and log-probs exist only after
// sampling.)
#ifndef RLHF_HOST_SAMPLE_REWARD_OVERLAP_H
#define RLHF_HOST_SAMPLE_REWARD_OVERLAP_H

#include "sample/reward_ask.h"

struct rlhf__reward_overlap;

struct rlhf__overlap_request {
    const struct rlhf__config *config;
    struct rlhf__instance *const *rewards; // [config->n_reward]
    struct rlhf__scored_by by;
    int64_t phase;
    // receives all failures but the first, which is reported when the batch is scored
    struct rlhf__log *log;
    uint32_t n, group; // rows of the batch; rows per call
};

// A finished row; the arrays are borrowed until the call returns.
struct rlhf__overlap_row {
    uint32_t row; // index in the batch
    int32_t prompt_len, response_len;
    int32_t finished;
    int64_t source; // index of its prompt
    const int32_t *prompt, *response;
};

// Returns 1 if the reward may be called while rows are being sampled. [any]
int rlhf__overlap_allowed(const struct rlhf__instance *reward);

// Start the thread. *out is NULL if none of the rewards may be called early. Errors: RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__overlap_open(const struct rlhf__overlap_request *q,
                               struct rlhf__reward_overlap **out, struct rlhf__error *err);

// Add a finished row. If all rewards that are called early have RLHF_REWARD_ROW_ALONE, the row is
// scored immediately, otherwise as soon as its group is complete. If memory runs out, the row is
// scored later, with the batch. [main]
void rlhf__overlap_add(struct rlhf__reward_overlap *a, const struct rlhf__overlap_row *row);

// Wait for the thread, then return reward k's answers so far. Returns NULL if the reward was not
// called early. Borrowed. [main]
struct rlhf__overlap_answers *rlhf__overlap_take(struct rlhf__reward_overlap *a, size_t k);

void rlhf__overlap_close(
    struct rlhf__reward_overlap *a); // waits for the thread; NULL allowed [main]

#endif
