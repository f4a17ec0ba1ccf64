// reward_call.h: one call of a reward: score() of some rows, timed, its metrics kept, and which
// rows it could not score. What becomes of those is reward_ask.h's.
#ifndef RLHF_HOST_REWARD_CALL_H
#define RLHF_HOST_REWARD_CALL_H

#include "sample/reward_books.h"
#include "sample/reward_metrics.h"
#include "sample/reward_rows.h"

// A reward, and with what it is asked; all borrowed.
struct rlhf__reward_call {
    const struct rlhf__mixing_config *rules; // on_failure, retries, nan_policy
    const struct rlhf__instance *plugin;
    uint64_t phase;
    int32_t pays;                     // 0: it looks on, and what it cannot score is no opinion
    int32_t narrows;                  // 1: what ends its process is looked for (reward_narrow.h)
    struct rlhf__log *log;            // told what failed and is gone on from; NULL = nobody
    struct rlhf__reward_books *books; // grow; NULL = nobody counts
};

// Marks that are not 0. [any]
uint32_t rlhf__marks_count(const uint8_t *marks, uint32_t n);

// Call it about r; *a has room for the answer. Rows that could not be scored are marked in
// a->failed and nothing is said of them; then *why says what was said, and *whole is 1 where the
// call failed instead of marking rows. Only its time goes to the books. Errors: RLHF_E_NOMEM and
// RLHF_E_CANCELLED of the reward, which are no failures of rows. [step]
rlhf_status rlhf__reward_call(const struct rlhf__reward_call *q,
                              struct rlhf__reward_metrics *metrics,
                              const struct rlhf__reward_rows *r, struct rlhf__reward_answer *a,
                              struct rlhf__error *why, int32_t *whole, struct rlhf__error *err);

#endif
