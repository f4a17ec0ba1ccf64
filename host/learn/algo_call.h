// algo_call.h: the calls of an algorithm after plan() (rlhf/algo.h). What the algorithm gives is
// checked: it may only have values of its headers, and arrays must not be replaced.
#ifndef RLHF_HOST_LEARN_ALGO_CALL_H
#define RLHF_HOST_LEARN_ALGO_CALL_H

#include "learn/learner.h"
#include "plugin/services.h"

#include <rlhf/algo.h>

// Returns the algorithm's loss() and minibatch_end() in the form that a learner needs. Borrowed.
// [any]
struct rlhf__objective rlhf__algo_objective(struct rlhf__instance *algo);

// Call the algorithm's advantages(), for rows that have e's columns, or phase_end() (rlhf/algo.h).
// Do nothing if the algorithm lacks this optional function. Errors: those of the plugin. [step]
rlhf_status rlhf__algo_advantages(const struct rlhf__instance *algo, const struct rlhf__rows *e,
                                  const rlhf_rollout *, rlhf_advantages *out,
                                  struct rlhf__error *err);
rlhf_status rlhf__algo_phase_end(const struct rlhf__instance *algo, const rlhf_phase_info *,
                                 struct rlhf__error *err);

#endif
