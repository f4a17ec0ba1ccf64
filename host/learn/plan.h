// plan.h: what an algorithm asks of a run, checked before anything is loaded: a plan is served
// whole or refused.
#ifndef RLHF_HOST_PLAN_H
#define RLHF_HOST_PLAN_H

#include "config/config.h"
#include "plugin/services.h"

#include <rlhf/algo.h>

// Ask the algorithm for its plan and check it: fields, bits and what its source of rows can give,
// and the functions that the source needs. RLHF_E_UNSUPPORTED with the plugin and the field; a
// failure of plan() as it says. [main]
rlhf_status rlhf__plan_ask(const struct rlhf__instance *algo, const rlhf_run_info *info,
                           rlhf_plan *out, struct rlhf__error *err);

// Refuse `is` where it differs from the plan that the run was set up by. [main]
rlhf_status rlhf__plan_same(const struct rlhf__instance *algo, const rlhf_plan *was,
                            const rlhf_plan *is, struct rlhf__error *err);

// What an algorithm has planned: RLHF_E_UNSUPPORTED or RLHF_E_INVALID, with its id, for what no run
// can give. [any]
rlhf_status rlhf__plan_check(const struct rlhf__plugin *algo, const rlhf_plan *p,
                             struct rlhf__error *err);

// Whether the batches of responses that the configuration asks for can be had under the plan.
// Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__plan_check_batch(const struct rlhf__plugin *algo, const rlhf_plan *p,
                                   const struct rlhf__config *c, struct rlhf__error *err);

#endif
