// reply.h: what a reward service answered to n rows, as rewards. The text is anything at all.
//
//   rows      a list of n: a number, null, or an object as exec.so reads it (exec/answer_line.h)
//   openrlhf  {"rewards": list of n, or a number where n is 1; "extra_logs": {name: list of n, or a
//             number}}; other keys ("scores") are left alone
//
// null is a reward that is no number: rewards.nan_policy says what becomes of the row.
#ifndef RLHF_REWARDS_HTTP_REPLY_H
#define RLHF_REWARDS_HTTP_REPLY_H

#include "http/options.h"
#include "process/tally.h"

// Where the rewards go: n of each.
struct rlhf__reply {
    int32_t form; // enum rlhf__http_form
    uint32_t n;
    float *seq;
    uint8_t *verdict, *failed;
    struct rlhf__tally **tally; // of the host's memory where there are metrics, else left alone
};

enum { RLHF__WHY = 512 };

// RLHF_OK: each row has a reward, or is marked in failed; RLHF_E_INVALID: the answer is none.
// *why (RLHF__WHY bytes) says what was found and what is wanted, of the first failed row or of the
// whole; "" when all is well. RLHF_E_NOMEM. [any]
rlhf_status rlhf__reply_read(const struct rlhf__reply *, const rlhf_host *, const char *text,
                             size_t len, char *why);

#endif
