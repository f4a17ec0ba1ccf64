// ahead.h: rewards asked about rows of a batch while others of it are still being drawn
// (rewards.overlap), on a thread of the host's own. What they say is kept until the batch is scored
// (reward_call.h), which asks about the rest and does with failures what the settings say: nothing
// is decided here, and scores do not depend on what was asked when.
//
// It is for rewards whose work is done outside the process: those that asked for "rlhf.limits/0",
// or that run in a worker and look at no other row (RLHF_REWARD_ROW_ALONE); that have asked for no
// service that computes, and keep no state that the order of calls could change.
#ifndef RLHF_HOST_AHEAD_H
#define RLHF_HOST_AHEAD_H

#include "sample/reward_ask.h"

struct rlhf__ahead;

struct rlhf__ahead_request {
    const struct rlhf__config *config;
    struct rlhf__instance *const *rewards; // [config->n_reward]
    struct rlhf__scored_by by;
    uint64_t phase;
    struct rlhf__log *log; // told of failures but the first, which is told when rows are scored
    uint32_t n, group;     // rows of the batch; rows that are finished before they are asked about
};

// A row that is finished; the arrays are borrowed until the call returns.
struct rlhf__ahead_row {
    uint32_t row; // of the batch
    int32_t prompt_len, response_len;
    int32_t finished;
    int64_t source; // its prompt
    const int32_t *prompt, *response;
};

// 1 when that reward may be asked so. [any]
int rlhf__ahead_may(const struct rlhf__instance *reward);

// *out = NULL where no reward of the request may be asked so. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__ahead_create(const struct rlhf__ahead_request *q, struct rlhf__ahead **out,
                               struct rlhf__error *err);

// A row is finished; its group (with RLHF_REWARD_ROW_ALONE the row) is asked about when it is
// whole. Without memory for it, it is left for later. [main]
void rlhf__ahead_add(struct rlhf__ahead *a, const struct rlhf__ahead_row *row);

// What reward k has said, of the rows that it was asked about; waits for the thread. NULL: it was
// not asked. Borrowed. [main]
struct rlhf__reward_early *rlhf__ahead_take(struct rlhf__ahead *a, size_t k);

void rlhf__ahead_destroy(struct rlhf__ahead *a); // waits for the thread; NULL allowed [main]

#endif
