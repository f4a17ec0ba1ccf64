// ragged.h: reads and checks the rows of an attention call, which have different lengths
// (rlhf_ragged).
//
// These functions do not check that the keys are inside of their buffer.
#ifndef RLHF_CPU_ATTENTION_RAGGED_H
#define RLHF_CPU_ATTENTION_RAGGED_H

#include "machine/context.h"

// One row. It has the queries t0 .. t0+nq-1 and nk keys. Its first np keys are the tokens from p0
// onward; the other keys are the tokens from k0 onward.
// p0 and k0 may be negative if no query sees the first keys.
struct rlhf__row {
    size_t t0;
    int64_t p0, k0;
    uint32_t nq, nk, np, start;
};

// Row i of r. [any]
struct rlhf__row rlhf__cpu_row(const rlhf_ragged *r, size_t i);

// True if row i shares its first keys with an earlier row. [any]
static inline int rlhf__cpu_row_shares(const rlhf_ragged *r, size_t i) {
    return r->prefix_len && (rlhf__cpu_i32(r->prefix_len))[i] > 0;
}

// The first key that a query at this position sees. window 0: none.
static inline size_t rlhf__cpu_first_key(int32_t window, size_t pos) {
    const size_t w = (size_t)window;
    return w && pos + 1 > w ? pos + 1 - w : 0;
}

// Copy the caller's struct to *r. Returns RLHF_E_INVALID, with op and row in the message, if the
// arrays contradict each other or contradict total, max_q or max_k, or if a key that a query with
// this window sees has a negative location. [step]
rlhf_status rlhf__cpu_read_ragged(struct rlhf__cpu *cpu, const char *op, rlhf_ragged *r,
                                  const rlhf_ragged *from_caller, int32_t window);

// Like rlhf__cpu_read_ragged, but returns RLHF_E_UNSUPPORTED if r is not in the training layout
// (attention_bwd in rlhf/compute.h). [step]
rlhf_status rlhf__cpu_read_training(struct rlhf__cpu *cpu, const char *op, rlhf_ragged *r,
                                    const rlhf_ragged *from);

#endif
