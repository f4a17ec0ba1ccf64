// reward_ask.h: ask one reward about the rows of a batch and handle those that it could not score
// (rewards.on_failure, rewards.retries). The scores of the other rows are not judged here, with one
// exception: `retry` asks again for a number that is not finite where rewards.nan_policy would
// stop.
//
// What a reward reports with host->metric in several calls becomes the mean over the calls,
// weighted by the rows that each scored.
#ifndef RLHF_HOST_REWARD_ASK_H
#define RLHF_HOST_REWARD_ASK_H

#include "sample/reward_call.h"

// ---- before the batch is scored ----

// Answers of a reward about some rows before the batch is scored. Zero-initialise; release with
// rlhf__reward_early_finish.
struct rlhf__reward_early {
    uint8_t *known;   // [n] 1 = the row has an answer; NULL: the reward is not asked early
    uint8_t *verdict; // [n]
    uint8_t *failed;  // [n]
    float *seq;       // [n]
    float **token;    // [n] scores of the row's tokens, owned; NULL: none
    uint32_t n, reserved;
    struct rlhf__error why; // of the first failure; code 0: none
    struct rlhf__reward_books books;
    struct rlhf__reward_metrics metrics;
};

// Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__reward_early_init(struct rlhf__reward_early *e, uint32_t n,
                                    struct rlhf__error *err);
void rlhf__reward_early_finish(struct rlhf__reward_early *e); // accepts a zeroed one [main]

// Ask about r, whose row i is row number[i] of the batch, and keep the answers. Rows stay unknown
// after a failure that is not theirs (memory, cancelling). One call at a time. [step]
void rlhf__reward_ask_early(const struct rlhf__reward_call *q, const struct rlhf__reward_rows *r,
                            const uint32_t *number, struct rlhf__reward_early *e);

// ---- the batch ----

// Fill *a, which has room for r; early: the answers so far, NULL = none. With on_failure zero or
// drop a->failed marks the rows that could not be scored; with stop and retry there are none. A
// retry asks about a row together with its group (unless RLHF_REWARD_ROW_ALONE), whose other rows
// keep their answers; after a whole call failed the reward's state (its save) is restored first.
// Errors: RLHF_E_IO in a sentence with plugin, phase, rows, the reason and rewards.on_failure;
// RLHF_E_NOMEM and RLHF_E_CANCELLED, which are not failures of rows. [step]
rlhf_status rlhf__reward_ask(const struct rlhf__reward_call *q, struct rlhf__reward_early *early,
                             const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                             struct rlhf__error *err);

#endif
