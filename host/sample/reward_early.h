// reward_early.h: what a reward has said of some rows of a batch before the batch is scored.
#ifndef RLHF_HOST_REWARD_EARLY_H
#define RLHF_HOST_REWARD_EARLY_H

#include "sample/reward_call.h"

// Zero-initialise; release with rlhf__reward_early_finish.
struct rlhf__reward_early {
    uint8_t *known;   // [n] 1 = it was asked about the row; NULL: it is not asked early
    uint8_t *verdict; // [n]
    uint8_t *failed;  // [n]
    float *seq;       // [n]
    float **token;    // [n] of the row's tokens, owned; NULL: nothing is paid token by token
    uint32_t n, reserved;
    struct rlhf__error why; // of the first failure; code 0: none
    struct rlhf__reward_books books;
    struct rlhf__reward_metrics metrics;
};

// Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__reward_early_init(struct rlhf__reward_early *e, uint32_t n,
                                    struct rlhf__error *err);
void rlhf__reward_early_finish(struct rlhf__reward_early *e); // accepts a zeroed one [main]

// Ask about r, whose row i is row number[i] of the batch, and keep what is said. What is no failure
// of rows (memory, cancelling) leaves them unknown. One call at a time. [step]
void rlhf__reward_ask_early(const struct rlhf__reward_call *q, const struct rlhf__reward_rows *r,
                            const uint32_t *number, struct rlhf__reward_early *e);

// What was said of row i becomes the answer about it: 1, or 0 when nothing was. [any]
int rlhf__reward_early_take(const struct rlhf__reward_early *e, uint32_t i,
                            const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a);

#endif
