// numbers.h: compares the numbers of a phase in metrics.jsonl and rollouts.jsonl with the
// recomputed ones.
#ifndef RLHF_TOOLS_VERIFY_NUMBERS_H
#define RLHF_TOOLS_VERIFY_NUMBERS_H

#include "feed/recorded.h"
#include "verify/checks.h"

// Compare the phase's row of metrics.jsonl in the run with the recomputed row. Leaves out metrics
// of time, speed, sampling and rewards, which are not recomputed. Loss and gradient norm are
// compared here only if the phase's steps were not recorded (has_updates = 0). Errors:
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__numbers_metrics(const json_t *run, const json_t *again, int has_updates,
                                  const struct rlhf__check_limits *, struct rlhf__checks *,
                                  struct rlhf__error *err);

// Compare the phase's lines of rollouts.jsonl: log-probs, values, advantages and returns of the
// rows, and loss and gradient norm of each step. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__numbers_rollouts(const struct rlhf__recorded *run,
                                   const struct rlhf__recorded *again,
                                   const struct rlhf__check_limits *, struct rlhf__checks *,
                                   struct rlhf__error *err);

#endif
