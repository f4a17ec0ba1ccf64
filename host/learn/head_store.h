// head_store.h: host arrays for the heads of one microbatch, grown as needed.
#ifndef RLHF_HOST_HEAD_STORE_H
#define RLHF_HOST_HEAD_STORE_H

#include "base/error.h"

#include <rlhf/model.h>

struct rlhf__head_store {
    rlhf_heads heads; // unused ones are NULL
    size_t tokens, rows;
};

// Allocate every head of `heads` for so many `rows` and `tokens`; contents are lost. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__head_store_reserve(struct rlhf__head_store *, uint32_t heads, size_t rows,
                                     size_t tokens, int32_t n_labels, struct rlhf__error *err);
// Set all numbers to 0. [any]
void rlhf__head_store_clear(struct rlhf__head_store *, size_t rows, size_t tokens,
                            int32_t n_labels);
void rlhf__head_store_finish(struct rlhf__head_store *); // accepts a zeroed one [any]

#endif
