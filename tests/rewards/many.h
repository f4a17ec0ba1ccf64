// many.h: batches of many similar rows, for rewards that run outside the process.
#ifndef RLHF_TESTS_REWARDS_MANY_H
#define RLHF_TESTS_REWARDS_MANY_H

#include "rewards/fixture.h"

enum { MANY = 2000 };

// The results of the last call; set a batch's texts and rows before it.
struct many {
    rlhf_str prompt[MANY], response[MANY], meta[MANY];
    int32_t ids[4 * MANY], offset[MANY + 1], prompt_len[MANY], group[MANY];
    uint8_t finished[MANY], verdict[MANY], failed[MANY];
    float seq[MANY];
    int64_t phase;
};

// Fill with n rows in groups of 2. Each has the prompt "It was ", the same response, and the ids 7,
// 8 | 9, 10.
void many_fill(struct many *, uint32_t n, rlhf_str response);

// Score the first n. Earlier failures are forgotten.
rlhf_status many_score(struct reward *, struct many *, uint32_t n);

// The host's service for programs, which runs them as rlhf-host of the build tree does. [any]
const void *many_programs(void);

// How many of the first n have failed.
uint32_t many_failed(const struct many *, uint32_t n);

#endif
