// many.h: batches of many similar rows, for rewards that run outside the process.
#ifndef RLHF_TESTS_REWARDS_MANY_H
#define RLHF_TESTS_REWARDS_MANY_H

#include "rewards/fixture.h"

enum { MANY = 2000 };

// The arguments and results of a call. Set a batch's texts and rows before the call.
struct many {
    rlhf_str prompt[MANY], response[MANY], meta[MANY];
    int32_t ids[4 * MANY], offset[MANY + 1], prompt_len[MANY], group[MANY];
    uint8_t finished[MANY], verdict[MANY], failed[MANY];
    float seq[MANY];
    int64_t phase;
};

// Fills the struct with n rows in groups of 2. Every row has the prompt "It was " with the ids 7,
// 8, and the same response with the ids 9, 10.
void many_fill(struct many *, uint32_t n, rlhf_str response);

// Scores the first n rows. Earlier failures are forgotten.
rlhf_status many_score(struct reward *, struct many *, uint32_t n);

// The host's service for programs, which runs them as rlhf-host of the build tree does. [any]
const void *many_programs(void);

// Returns how many of the first n rows have failed.
uint32_t many_failed(const struct many *, uint32_t n);

#endif
