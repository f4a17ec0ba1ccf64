// call.h: one call of an environment, for some episodes.
#ifndef RLHF_HOST_EPISODE_CALL_H
#define RLHF_HOST_EPISODE_CALL_H

#include "episode/episode.h"
#include "plugin/services.h"

enum rlhf__episode_function { RLHF__CALL_RESET = 0, RLHF__CALL_STEP = 1, RLHF__CALL_FINISH = 2 };

// Call one function of the environment for n episodes. Stores the returned texts, rewards and
// decisions in the episodes. Does nothing if the environment lacks the function, or n is 0. If the
// environment cannot answer an episode, sets that episode's `failed` and returns RLHF_E_IO. If the
// function itself fails, returns its error. Unless this error is RLHF_E_INVALID, also sets `failed`
// in all n episodes. Other errors: RLHF_E_NOMEM; RLHF_E_INTERNAL (the environment broke a rule of
// rlhf/draft/environment.h). [step]
rlhf_status rlhf__episode_call(const struct rlhf__instance *environment, int64_t phase,
                               int function, struct rlhf__episode *const *of, uint32_t n,
                               struct rlhf__error *err);

// Call the environment's close() for each episode whose `seen` is 1. [step]
void rlhf__episode_close(const struct rlhf__instance *environment, struct rlhf__episode *const *of,
                         uint32_t n);

#endif
