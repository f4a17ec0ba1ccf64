// memory_plan.h: a compute backend that computes nothing. Its table has the ops of a real backend,
// but its addresses must not be read: it only counts what the caller allocates, by owner and use.
// The code that will allocate the memory makes the calls.
//
// Packed weights and workspaces have the sizes that the real backend states (weight_bytes,
// workspace_bytes). How much memory there is: free_memory.h.
#ifndef RLHF_HOST_MEMORY_PLAN_H
#define RLHF_HOST_MEMORY_PLAN_H

#include "base/error.h"
#include "model/memory_use.h"

#include <rlhf/compute.h>

struct rlhf__memory_plan;

// A table like `real`, which is borrowed: a member that it lacks is NULL. Workspaces of a backend
// without workspace_bytes count 0. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__memory_plan_create(const rlhf_compute *real, struct rlhf__memory_plan **out,
                                     struct rlhf__error *err);
void rlhf__memory_plan_destroy(struct rlhf__memory_plan *); // NULL allowed [main]

const rlhf_compute *rlhf__memory_plan_table(const struct rlhf__memory_plan *);

// Later allocations belong to `owner` and are for `use`. Packed weights and workspaces have uses of
// their own. [step]
void rlhf__memory_plan_account(struct rlhf__memory_plan *, const char *owner, int32_t use);
// Until the next rlhf__memory_plan_account, packed weights belong to `owner`. [step]
void rlhf__memory_plan_packs(struct rlhf__memory_plan *, const char *owner);
// The allocation that contains `dev` is for `use`. [step]
void rlhf__memory_plan_set_use(struct rlhf__memory_plan *, rlhf_dev dev, int32_t use);
// The current allocations, and those at the peak. [any]
const struct rlhf__uses *rlhf__memory_plan_uses(const struct rlhf__memory_plan *);
const struct rlhf__uses *rlhf__memory_plan_peak(const struct rlhf__memory_plan *);

#endif
