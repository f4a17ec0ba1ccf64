// algo.h: the calls into an algorithm's plugin, except plan() (learn/plan.h).
#ifndef RLHF_HOST_LEARN_ALGO_H
#define RLHF_HOST_LEARN_ALGO_H

#include "learn/learner.h"

// The algorithm's loss() and minibatch_end(), for a learner. Borrowed. [any]
struct rlhf__objective rlhf__algo_objective(struct rlhf__instance *algo);

// As in rlhf/algo.h; a missing optional function does nothing. Errors: those of the plugin. [step]
rlhf_status rlhf__algo_advantages(const struct rlhf__instance *algo, const rlhf_rollout *,
                                  struct rlhf__error *err);
rlhf_status rlhf__algo_phase_end(const struct rlhf__instance *algo, int64_t phase,
                                 struct rlhf__error *err);

#endif
