// plan.h: an algorithm's plan: its requests to the host, checked before anything is loaded. A plan
// is accepted as a whole or refused. Then the other calls into its plugin.
#ifndef RLHF_HOST_PLAN_H
#define RLHF_HOST_PLAN_H

#include "config/config.h"
#include "learn/learner.h"
#include "plugin/services.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

// Ask the algorithm for its plan and check it: fields, bits, what its source of rows supports, and
// the functions that the source needs. After a failure the plan is empty. Errors:
// RLHF_E_UNSUPPORTED with the plugin and the field; those of plan(). [main]
rlhf_status rlhf__plan_ask(const struct rlhf__instance *algo, const rlhf_run_info *info,
                           rlhf_plan *out, struct rlhf__error *err);

// *out = what the algorithm's extension RLHF_EXT_ITERATION requests; zeros without the extension.
// Errors: RLHF_E_UNSUPPORTED if it cannot be read, or if the rows of the plan rule it out. [main]
rlhf_status rlhf__plan_iteration(const struct rlhf__instance *algo, const rlhf_plan *plan,
                                 rlhf_iteration *out, struct rlhf__error *err);

// Refuse `is` if it differs from the plan that the run was set up with. [main]
rlhf_status rlhf__plan_same(const struct rlhf__instance *algo, const rlhf_plan *was,
                            const rlhf_plan *is, struct rlhf__error *err);

// Check an algorithm's plan: RLHF_E_UNSUPPORTED or RLHF_E_INVALID, with its id, for requests that
// the host cannot meet in any run. [any]
rlhf_status rlhf__plan_check(const struct rlhf__plugin *algo, const rlhf_plan *p,
                             struct rlhf__error *err);

// Check that the configured batches of responses are possible under the plan. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__plan_check_batch(const struct rlhf__plugin *algo, const rlhf_plan *p,
                                   const struct rlhf__config *c, struct rlhf__error *err);

// 1 if the plan needs the reference's values of the rows. [any]
int rlhf__plan_wants_reference(const rlhf_plan *plan);

// The place of a named model in the plan, -1: it has none of that name (or name is NULL). [any]
int32_t rlhf__plan_named(const rlhf_plan *plan, const char *name);

// ---- the other calls ----

// The algorithm's loss() and minibatch_end(), for a learner. Borrowed. [any]
struct rlhf__objective rlhf__algo_objective(struct rlhf__instance *algo);

// As in rlhf/algo.h; a missing optional function does nothing. Errors: those of the plugin. [step]
rlhf_status rlhf__algo_advantages(const struct rlhf__instance *algo, const rlhf_rollout *,
                                  struct rlhf__error *err);
rlhf_status rlhf__algo_phase_end(const struct rlhf__instance *algo, int64_t phase,
                                 struct rlhf__error *err);

#endif
