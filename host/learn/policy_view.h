// policy_view.h: calls an algorithm for rows of several turns. The algorithm sees only the tokens
// that the policy wrote, and its results are copied back to those tokens. Rows of one turn are
// passed on unchanged.
#ifndef RLHF_HOST_LEARN_POLICY_VIEW_H
#define RLHF_HOST_LEARN_POLICY_VIEW_H

#include "learn/learner.h"

// Call advantages() for the rows of e. The arrays in r and in out have the layout of e. Errors:
// those of the algorithm, RLHF_E_NOMEM. [step]
rlhf_status rlhf__view_advantages(const struct rlhf__instance *algo, const struct rlhf__rows *e,
                                  const rlhf_rollout *r, rlhf_advantages *out,
                                  struct rlhf__error *err);

// Call the objective's loss for rows [from, to) of e. The arrays in `in` and `out` have the layout
// of that slice. [step]
rlhf_status rlhf__view_loss(const struct rlhf__objective *, const struct rlhf__rows *e,
                            uint32_t from, uint32_t to, const rlhf_loss_in *in, rlhf_loss_out *out,
                            struct rlhf__error *err);

#endif
