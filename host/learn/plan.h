// plan.h: an algorithm's plan, i.e. what the algorithm requests from the host. The plan is checked
// before anything is loaded, and accepted or rejected as a whole. The algorithm's other functions
// are also called from here.
#ifndef RLHF_HOST_LEARN_PLAN_H
#define RLHF_HOST_LEARN_PLAN_H

#include "config/config.h"
#include "learn/learner.h"
#include "plugin/services.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

// Ask the algorithm for its plan. Check that the fields and bits of the plan are known, that the
// source of rows supports the plan's requests, and that the plugin has the functions that the
// source needs. After a failure the plan is empty. Errors: RLHF_E_UNSUPPORTED with the plugin and
// the field; those of plan(). [main]
rlhf_status rlhf__plan_ask(const struct rlhf__instance *algo, const rlhf_run_info *info,
                           rlhf_plan *out, struct rlhf__error *err);

// Set *out to the requests of the algorithm's extension RLHF_EXT_ITERATION; all 0 without the
// extension. Errors: RLHF_E_UNSUPPORTED if the extension cannot be read, or if the plan's source of
// rows does not allow the extension's requests. [main]
rlhf_status rlhf__plan_iteration(const struct rlhf__instance *algo, const rlhf_plan *plan,
                                 rlhf_iteration *out, struct rlhf__error *err);

// Return an error if the current plan `is` differs from `was`, the plan with which the run was set
// up. [main]
rlhf_status rlhf__plan_same(const struct rlhf__instance *algo, const rlhf_plan *was,
                            const rlhf_plan *is, struct rlhf__error *err);

// Check an algorithm's plan for requests that the host cannot meet in any run. Errors:
// RLHF_E_UNSUPPORTED or RLHF_E_INVALID, with the algorithm's id. [any]
rlhf_status rlhf__plan_check(const struct rlhf__plugin *algo, const rlhf_plan *p,
                             struct rlhf__error *err);

// Check that batches of responses, as configured, are possible under the plan. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__plan_check_batch(const struct rlhf__plugin *algo, const rlhf_plan *p,
                                   const struct rlhf__config *c, struct rlhf__error *err);

// Returns 1 if the plan needs the reference's log-probs of the rows. [any]
int rlhf__plan_wants_reference(const rlhf_plan *plan);

// Returns the bits of enum rlhf__column_need (batch/row_columns.h) that the plan fulfils. [any]
uint32_t rlhf__plan_columns(const rlhf_plan *plan);

// Returns the flags that the plan sets in its batches (enum rlhf__rows_flag). [any]
uint32_t rlhf__plan_row_flags(const rlhf_plan *plan);

// Returns the names that a plan may not give to a model, ended by NULL. Like rlhf__metrics_of_host,
// the list does not become longer in version 1 of the contract. [any]
const char *const *rlhf__plan_roles(void);

// Returns the index of a named model in the plan, or -1 if the plan does not name it or `name` is
// NULL. [any]
int32_t rlhf__plan_named(const rlhf_plan *plan, const char *name);

#endif
