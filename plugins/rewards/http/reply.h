// reply.h: reads the answer of a reward service for n rows. The service may send any text, so every
// part of the answer is checked.
//
// rows      a list of n: a number, null, or an object as exec.so reads it (answer_line.h)
// openrlhf  {"rewards": list of n, or a number if n is 1; "extra_logs": {name: list of n, or a
//           number}}; other keys ("scores") are ignored
//
// A null counts as a reward that is not finite, so rewards.nan_policy decides what happens to the
// row.
#ifndef RLHF_REWARDS_HTTP_REPLY_H
#define RLHF_REWARDS_HTTP_REPLY_H

#include "http/options.h"
#include "process/tally.h"

// Where to store the rewards: n of each.
struct rlhf__reply {
    int32_t form; // enum rlhf__http_form
    uint32_t n;
    float *seq;
    uint8_t *verdict, *failed;
    struct rlhf__tally **tally; // allocated by the host if metrics come, else unchanged
};

enum { RLHF__WHY = 512 };

// Returns RLHF_OK if every row has a reward or is marked in `failed`, RLHF_E_INVALID if the answer
// is invalid, or RLHF_E_NOMEM. `why` (RLHF__WHY bytes) describes the first failed row or the error
// in the answer: what was found and what was expected. If all rows have rewards, `why` is "". [any]
rlhf_status rlhf__reply_read(const struct rlhf__reply *, const rlhf_host *, const char *text,
                             size_t len, char *why);

#endif
