// memory_plan.h: a compute backend that computes nothing. It has the ops of a real backend, but it
// only counts the bytes that the caller allocates, by owner and use. Memory at its addresses must
// not be read. The calls come from the same code that will later allocate the memory.
//
// If it is given the backend's speeds, it also adds up how long the calls would take.
//
// Packed weights and workspaces have the sizes that the real backend states (weight_bytes,
// workspace_bytes). free_memory.h compares the result with the free memory.
#ifndef RLHF_HOST_ESTIMATE_MEMORY_PLAN_H
#define RLHF_HOST_ESTIMATE_MEMORY_PLAN_H

#include "base/error.h"
#include "estimate/speed.h"

#include <rlhf/compute.h>

#include <stddef.h>
#include <stdint.h>

// ---- memory_use.c: bytes by owner and use, and allocations that are only counted ----

// What memory is used for.
enum rlhf__use {
    RLHF__USE_WEIGHTS,     // f32 values of parameters
    RLHF__USE_PACKED,      // copies of the weights in the layout that GEMMs use
    RLHF__USE_GRADIENTS,   // f32
    RLHF__USE_MOMENTS,     // optimizer moments
    RLHF__USE_ACTIVATIONS, // for the largest microbatch, and for a forward pass without gradients
    RLHF__USE_CACHE,       // keys and values while sampling
    RLHF__USE_WORKSPACE,   // the backend's: logits, operands of matrix products
    RLHF__USE_ROWS,        // tokens, numbers and texts of a phase
    RLHF__USE_ROLLBACK,    // copies of everything that an update changes (keep/boundary.h)
    RLHF__USE_PROGRAM,     // the process before it loads models: code, data, tokenizers
    RLHF__USES
};
const char *rlhf__use_name(int32_t use); // "packed weights" [any]

#define RLHF__OWNERS 20

// Bytes by owner and use. Owners are roles, such as "policy", in the order of their first use.
struct rlhf__uses {
    uint32_t n;
    char name[RLHF__OWNERS][32];
    uint64_t bytes[RLHF__OWNERS][RLHF__USES];
};

// Returns the index of an owner. Adds the owner if it is new. If the table is full, returns the
// index of the last owner instead. [any]
uint32_t rlhf__uses_owner(struct rlhf__uses *u, const char *name);
uint64_t rlhf__uses_total(const struct rlhf__uses *u); // [any]

#define RLHF__ALLOCATIONS_MOST ((uint64_t)1 << 60) // bytes of all allocations together

struct rlhf__allocation;

// Empty when zeroed.
struct rlhf__allocations {
    uint64_t next, now, peak; // bytes: address range used, allocated now, allocated at the peak
    struct rlhf__uses uses, at_peak;
    uint32_t owner, packer; // owners of later allocations and of later packed weights
    int32_t use;
    struct rlhf__allocation *block; // [n], in ascending order of addresses
    size_t n, cap;
    char error[160];
};

void rlhf__allocations_finish(struct rlhf__allocations *);

// Adds an allocation of the current owner for `use`. Errors: RLHF_E_NOMEM; the member `error` then
// has the reason. [step]
rlhf_status rlhf__allocations_add(struct rlhf__allocations *, uint64_t bytes, int32_t use,
                                  rlhf_dev *out);
// Returns RLHF_E_NOMEM for a request of that many bytes, and sets the member `error`. [step]
rlhf_status rlhf__allocations_refuse(struct rlhf__allocations *, uint64_t bytes);
void rlhf__allocations_remove(struct rlhf__allocations *, rlhf_dev); // NULL allowed [step]
// Adds bytes without an address. [step]
void rlhf__allocations_grow(struct rlhf__allocations *, uint32_t owner, int32_t use,
                            uint64_t bytes);
// Changes the use of the allocation that contains `dev`. [step]
void rlhf__allocations_set_use(struct rlhf__allocations *, rlhf_dev dev, int32_t use);

// ---- the plan ----

struct rlhf__memory_plan;

// Creates a plan whose table has the same functions as `real` (borrowed). If the backend does not
// have workspace_bytes, workspaces count as 0. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__memory_plan_open(const rlhf_compute *real, struct rlhf__memory_plan **out,
                                   struct rlhf__error *err);
void rlhf__memory_plan_close(struct rlhf__memory_plan *); // NULL allowed [main]

const rlhf_compute *rlhf__memory_plan_table(const struct rlhf__memory_plan *);

// Count later allocations for `owner` and `use`. Packed weights and workspaces are counted under
// separate uses, whatever `use` is. [step]
void rlhf__memory_plan_account(struct rlhf__memory_plan *, const char *owner, int32_t use);
// Count packed weights for `owner` until the next rlhf__memory_plan_account. [step]
void rlhf__memory_plan_packs(struct rlhf__memory_plan *, const char *owner);
// From now on, count calls as calls of `second`. This is another table of the same backend; it has
// its own workspaces, and may have a different number of threads. If `second` is NULL, count calls
// as those of the first table again. [step]
void rlhf__memory_plan_second(struct rlhf__memory_plan *, const rlhf_compute *second);
// Change the use of the allocation that contains `dev`. [step]
void rlhf__memory_plan_set_use(struct rlhf__memory_plan *, rlhf_dev dev, int32_t use);
// From now on, add up the seconds of all calls, with these speeds of the backend. [step]
void rlhf__memory_plan_time(struct rlhf__memory_plan *, const struct rlhf__speed *);
// Returns 1 if a weight with this format (enum rlhf_format) was created so far. Sets k and n of the
// largest part of such a weight. [any]
int rlhf__memory_plan_quantised(const struct rlhf__memory_plan *, int32_t format, int32_t *k,
                                int32_t *n);
// Return the seconds of all calls so far, and those of the last decoding step: the seconds between
// the last two calls of lm_sample. [any]
double rlhf__memory_plan_seconds(const struct rlhf__memory_plan *);
double rlhf__memory_plan_step_seconds(const struct rlhf__memory_plan *);
// Return the current allocations, and those at the peak. [any]
const struct rlhf__uses *rlhf__memory_plan_uses(const struct rlhf__memory_plan *);
const struct rlhf__uses *rlhf__memory_plan_peak(const struct rlhf__memory_plan *);

#endif
