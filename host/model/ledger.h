// ledger.h: allocations that are only written down: an address that nobody may read, its length,
// and whose it is; what there is of them now, and what there was when that was the most.
#ifndef RLHF_HOST_LEDGER_H
#define RLHF_HOST_LEDGER_H

#include "model/uses.h"

#include <rlhf/compute.h>

#include <stddef.h>

#define RLHF__LEDGER_MOST ((uint64_t)1 << 60) // bytes that can be given out

struct rlhf__ledger_block;

// Zeroed it is empty.
struct rlhf__ledger {
    uint64_t next, now, peak; // bytes of addresses given out; there now, and at most
    struct rlhf__uses uses, at_peak;
    uint32_t owner, packer; // of what is taken; whose weights are that are packed
    int32_t use, reserved;
    struct rlhf__ledger_block *block; // [n], ascending
    size_t n, cap;
    char error[160];
};

void rlhf__ledger_finish(struct rlhf__ledger *);

// An allocation of the present owner's for `use`. Errors: RLHF_E_NOMEM, and why in error. [step]
rlhf_status rlhf__ledger_take(struct rlhf__ledger *, uint64_t bytes, int32_t use, rlhf_dev *out);
// RLHF_E_NOMEM, for what was asked for and is not there; error says so. [step]
rlhf_status rlhf__ledger_none(struct rlhf__ledger *, uint64_t bytes);
void rlhf__ledger_give(struct rlhf__ledger *, rlhf_dev); // NULL allowed [step]
// Bytes of a row of uses that have no address. [step]
void rlhf__ledger_grow(struct rlhf__ledger *, uint32_t owner, int32_t use, uint64_t bytes);
// The allocation that `dev` lies in is for `use`. [step]
void rlhf__ledger_retag(struct rlhf__ledger *, rlhf_dev dev, int32_t use);

#endif
