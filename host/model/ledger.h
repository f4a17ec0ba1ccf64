// ledger.h: bytes of memory by who has them and what they are for; and a ledger of allocations that
// are only written down: an address that nobody may read, its length, its owner and its use. The
// ledger knows what is allocated now and what was allocated at the peak.
#ifndef RLHF_HOST_LEDGER_H
#define RLHF_HOST_LEDGER_H

#include <rlhf/compute.h>
#include <stddef.h>
#include <stdint.h>

// What memory is used for.
enum rlhf__use {
    RLHF__USE_WEIGHTS,     // f32 values of parameters
    RLHF__USE_PACKED,      // copies of them that matrix products read
    RLHF__USE_GRADIENTS,   // f32
    RLHF__USE_MOMENTS,     // of the optimizer
    RLHF__USE_ACTIVATIONS, // of the largest microbatch, and what a forward without gradients takes
    RLHF__USE_CACHE,       // keys and values while sampling
    RLHF__USE_WORKSPACE,   // of the backend: logits, operands of products
    RLHF__USE_ROWS,        // tokens, numbers and texts of a phase
    RLHF__USE_UNDO,        // a copy of what an update changes (keep/boundary.h)
    RLHF__USE_PROGRAM,     // of the process before models are loaded: code, data, tokenizers
    RLHF__USES
};
const char *rlhf__use_name(int32_t use); // "packed weights" [any]

#define RLHF__OWNERS 12

// Bytes by owner and use. name: a role, "policy"; n owners in the order they were first named.
struct rlhf__uses {
    uint32_t n, reserved;
    char name[RLHF__OWNERS][32];
    uint64_t bytes[RLHF__OWNERS][RLHF__USES];
};

// The row of an owner; adds one where there is none. The last row takes all that do not fit. [any]
uint32_t rlhf__uses_owner(struct rlhf__uses *u, const char *name);
uint64_t rlhf__uses_total(const struct rlhf__uses *u); // [any]

#define RLHF__LEDGER_MOST ((uint64_t)1 << 60) // bytes that can be given out

struct rlhf__ledger_block;

// Zeroed it is empty.
struct rlhf__ledger {
    uint64_t next, now, peak; // bytes: of addresses given out, allocated now, allocated at most
    struct rlhf__uses uses, at_peak;
    uint32_t owner, packer; // of the next allocations; of the next packed weights
    int32_t use, reserved;
    struct rlhf__ledger_block *block; // [n], ascending
    size_t n, cap;
    char error[160];
};

void rlhf__ledger_finish(struct rlhf__ledger *);

// Allocate for the present owner and `use`. Errors: RLHF_E_NOMEM, with the reason in error. [step]
rlhf_status rlhf__ledger_take(struct rlhf__ledger *, uint64_t bytes, int32_t use, rlhf_dev *out);
// RLHF_E_NOMEM for a request of that many bytes; puts the sentence into error. [step]
rlhf_status rlhf__ledger_none(struct rlhf__ledger *, uint64_t bytes);
void rlhf__ledger_give(struct rlhf__ledger *, rlhf_dev); // NULL allowed [step]
// Add bytes that have no address. [step]
void rlhf__ledger_grow(struct rlhf__ledger *, uint32_t owner, int32_t use, uint64_t bytes);
// Change the use of the allocation that `dev` lies in. [step]
void rlhf__ledger_retag(struct rlhf__ledger *, rlhf_dev dev, int32_t use);

#endif
