// call.h: one call of an environment, for some episodes.
#ifndef RLHF_HOST_EPISODE_CALL_H
#define RLHF_HOST_EPISODE_CALL_H

#include "episode/episode.h"
#include "plugin/services.h"

enum rlhf__episode_function {
    RLHF__CALL_RESET = 0,
    RLHF__CALL_STEP = 1,
    RLHF__CALL_FINISH = 2,
    RLHF__CALL_POLL = 3
};

struct rlhf__episode_call {
    const struct rlhf__instance *environment;
    int64_t phase;
    double timeout_s; // an answer that takes longer is a failure; 0 = no limit
    int32_t function; // enum rlhf__episode_function
    uint32_t wait_ms; // of RLHF__CALL_POLL: how long it may take
};

// Call one function of the environment for n episodes. Sets each episode's `answer`, and stores the
// returned texts, rewards and decisions in it. If the environment lacks the function, every answer
// is there at once. If the environment cannot answer an episode, sets that episode's `failed` and
// returns RLHF_E_IO. If the function itself fails, returns its error. Unless this error is
// RLHF_E_INVALID, also sets `failed` in all n episodes. Other errors: RLHF_E_NOMEM; RLHF_E_INTERNAL
// (the environment broke a rule of rlhf/environment.h). [step]
rlhf_status rlhf__episode_call(const struct rlhf__episode_call *, struct rlhf__episode *const *of,
                               uint32_t n, struct rlhf__error *err);

// Like rlhf__episode_call for one episode, but waits until its answer is there. Errors: also
// RLHF_E_CANCELLED. [step]
rlhf_status rlhf__episode_call_now(struct rlhf__episode_call, struct rlhf__episode *e,
                                   struct rlhf__error *err);

// Call the environment's close() for each episode whose `seen` is 1. [step]
void rlhf__episode_close(const struct rlhf__instance *environment, struct rlhf__episode *const *of,
                         uint32_t n);

#endif
