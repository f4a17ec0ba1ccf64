// reward_ask.h: calls one reward for the rows of a batch and handles the rows that it could not
// score (rewards.on_failure, rewards.retries). Scores are not checked here, with one exception: if
// a score is not finite and rewards.nan_policy would end the run, on_failure=retry repeats the call
// for that row.
//
// The metrics that the reward reports (host->metric) must be as if each row had been scored once.
// Therefore, if a call reported metrics and any of its rows must be scored again, the metrics are
// dropped and the call is repeated for all its rows. The other rows keep their first answers. There
// is one exception. A reward may score each row alone (RLHF_REWARD_ROW_ALONE) and may itself have
// marked as failed every row that must be scored again. The metrics of the call then cover only the
// other rows. So the metrics are kept, and only the marked rows are scored again.
#ifndef RLHF_HOST_SAMPLE_REWARD_ASK_H
#define RLHF_HOST_SAMPLE_REWARD_ASK_H

#include "sample/reward_call.h"

// ---- before the batch is scored ----

// A reward's answers for the rows that were scored early, that is, while other rows were being
// sampled. Zero-initialize; release with rlhf__overlap_answers_finish.
struct rlhf__overlap_answers {
    uint8_t *known;   // [n] 1 = the row has an answer; NULL: the reward is not called early
    uint8_t *verdict; // [n]
    uint8_t *failed;  // [n]
    uint8_t *again;   // [n] 1 = the row must be scored again for its reports; see rlhf__reward_ask
    float *seq;       // [n]
    float **token;    // [n] rewards of the row's tokens, owned; NULL = no token rewards
    uint32_t n;
    struct rlhf__error why; // reason for the first failure; code 0: no failure
    struct rlhf__reward_tally tally;
    struct rlhf__reward_metrics metrics;
};

// Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__overlap_answers_init(struct rlhf__overlap_answers *e, uint32_t n,
                                       struct rlhf__error *err);
void rlhf__overlap_answers_finish(struct rlhf__overlap_answers *e); // *e may be zeroed [main]

// Call the reward for r and keep the answers. Row i of r is row number[i] of the batch. After a
// failure that the rows did not cause (out of memory, cancelled), the rows stay unanswered for now.
// Only one call may run at a time. [step]
void rlhf__reward_ask_overlapped(const struct rlhf__reward_call *q,
                                 const struct rlhf__reward_rows *r, const uint32_t *number,
                                 struct rlhf__overlap_answers *e);

// ---- the batch ----

// Fill *a, which must be allocated for r, with the reward's answers. `early` (may be NULL) holds
// the answers that the reward gave before the batch was scored (reward_overlap.h). With
// on_failure=zero or drop, a->failed marks the rows that could not be scored. With on_failure=stop
// or retry, a->failed marks nothing.
//
// A retry repeats the call for each row that must be scored again, and for the rest of the row's
// group. With RLHF_REWARD_ROW_ALONE, only the row itself is scored again. If the call reported
// metrics, all rows of the call are scored again. Rows that did not need the retry keep their
// answers. If a call failed as a whole, the reward's saved state is restored before the retry.
// Errors: RLHF_E_IO with plugin, phase, rows, the reason and rewards.on_failure; RLHF_E_NOMEM and
// RLHF_E_CANCELLED, which do not count as failures of rows. [step]
rlhf_status rlhf__reward_ask(const struct rlhf__reward_call *q, struct rlhf__overlap_answers *early,
                             const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                             struct rlhf__error *err);

#endif
