// again.h: calls an environment. After a failure, the affected episodes begin again with reset(),
// and the turns that the policy has already written are replayed. An environment's answers depend
// only on the seed, the data row and the turns. So a run with failures produces the same bytes as a
// run without them.
#ifndef RLHF_HOST_EPISODE_AGAIN_H
#define RLHF_HOST_EPISODE_AGAIN_H

#include "episode/episode.h"
#include "plugin/services.h"

// Zero-initialize all members except `environment`, `phase`, `timeout_s`, `retries` and `drops`.
struct rlhf__asking {
    const struct rlhf__instance *environment;
    int64_t phase;
    double timeout_s; // as in struct rlhf__episode_call
    int64_t retries;  // maximum retries of an episode for one answer; 0 = none
    int64_t failures; // out: answers that failed
    int64_t lost;     // out: episodes that were given up
    double seconds;   // out: time in the environment
    int32_t drops;    // 1: an episode is given up after its last attempt (episodes.on_failure=drop)
};

// Call a function (enum rlhf__episode_function) for n episodes, as rlhf__episode_call does. With
// RLHF__CALL_POLL, waits up to wait_ms for the answers that come later. Sets `lost` in episodes
// that were given up; these count as answered. Errors: those of rlhf__episode_call, after the last
// attempt; RLHF_E_INTERNAL if the environment answers a replayed call differently than before.
// [step]
rlhf_status rlhf__episode_ask(struct rlhf__asking *, int function, uint32_t wait_ms,
                              struct rlhf__episode *const *of, uint32_t n, struct rlhf__error *err);

#endif
