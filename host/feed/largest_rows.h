// largest_rows.h: builds the largest rows that the next phases of a run with prompts can have, for
// the memory estimate.
#ifndef RLHF_HOST_FEED_LARGEST_ROWS_H
#define RLHF_HOST_FEED_LARGEST_ROWS_H

#include "batch/rows.h"
#include "data/order.h"
#include "data/prompts.h"

// What such rows are made from; all pointers are borrowed.
struct rlhf__largest_rows {
    const struct rlhf__prompts *prompts;
    struct rlhf__order *order; // its cursor is the same afterwards
    uint32_t n, group;         // number of rows; rows per prompt
    int32_t any;               // 1: the algorithm may choose any prompts
    int32_t max_new;           // longest response
    int32_t longest;           // tokens of the longest episode; 0: no episodes
    int32_t n_vocab_support;   // ids in a token's support; 0: none
    uint32_t flags;            // flags of the rows, besides RLHF__DRAWN
};

// Build the rows in a zeroed *e: the longest prompts, with responses of full length. Errors:
// RLHF_E_INVALID (there are too many tokens), RLHF_E_NOMEM. [step]
rlhf_status rlhf__largest_rows(const struct rlhf__largest_rows *, struct rlhf__rows *e,
                               struct rlhf__error *err);

#endif
