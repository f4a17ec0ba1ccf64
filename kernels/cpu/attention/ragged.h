// ragged.h: reads and checks the rows of an attention call, which have different lengths
// (rlhf_ragged).
//
// These functions do not check that the keys are inside of their buffer.
#ifndef RLHF_CPU_ATTENTION_RAGGED_H
#define RLHF_CPU_ATTENTION_RAGGED_H

#include "machine/context.h"

// One row. It has the queries t0 .. t0+nq-1 and nk keys. Its first np keys are the tokens from p0
// onward; the other keys are the tokens from k0 onward.
struct rlhf__row {
    size_t t0, p0, k0;
    uint32_t nq, nk, np, start;
};

// Row i of r. [any]
struct rlhf__row rlhf__cpu_row(const rlhf_ragged *r, size_t i);

// True if row i shares its first keys with an earlier row. [any]
static inline int rlhf__cpu_row_shares(const rlhf_ragged *r, size_t i) {
    return r->prefix_len && (rlhf__cpu_i32(r->prefix_len))[i] > 0;
}

// Copy the caller's struct to *r. Returns RLHF_E_INVALID, with op and row in the message, if the
// arrays contradict each other or contradict total, max_q or max_k. [step]
rlhf_status rlhf__cpu_read_ragged(struct rlhf__cpu *cpu, const char *op, rlhf_ragged *r,
                                  const rlhf_ragged *from_caller);

// Like rlhf__cpu_read_ragged, but returns RLHF_E_UNSUPPORTED if r is not in the training layout
// (attention_bwd in rlhf/compute.h). [step]
rlhf_status rlhf__cpu_read_training(struct rlhf__cpu *cpu, const char *op, rlhf_ragged *r,
                                    const rlhf_ragged *from);

#endif
