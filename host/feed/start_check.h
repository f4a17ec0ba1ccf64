// start_check.h: checks before a run's first phase that decoding and the training forward pass
// compute the same log-probs.
#ifndef RLHF_HOST_FEED_START_CHECK_H
#define RLHF_HOST_FEED_START_CHECK_H

#include "feed/feed.h"

struct rlhf__start_check {
    const struct rlhf__feed_env *env;
    struct rlhf__rollout_request request; // how the run samples
    int32_t share;                        // 1: rows of a group share its prompt
    int32_t reference_is_start;           // 1: the reference equals the starting policy
};

// Sample a few short responses. Compare the log-probs from decoding with those of the training
// forward pass. If reference_is_start is set, also compare them with the reference's. Errors:
// RLHF_E_INTERNAL if the log-probs differ. On a backend without exact rows, differences as small as
// rounding errors are allowed. [step]
rlhf_status rlhf__start_check(const struct rlhf__start_check *, struct rlhf__error *err);

#endif
