// ragged.h: the span of queries and keys of one ragged row (rlhf_ragged in rlhf/compute.h).
#ifndef RLHF_KERNELS_REFERENCE_RAGGED_H
#define RLHF_KERNELS_REFERENCE_RAGGED_H

#include "context.h"

struct rlhf__ref_span {
    uint64_t q0, nq; // first query token, number of them
    uint64_t start;  // keys before the first query
    uint64_t k0, nk; // first key token, number of keys
};

// Row i of r, whose arrays must be accessible. A row may be empty.
struct rlhf__ref_span rlhf__ref_ragged_span(const rlhf_ragged *r, uint32_t i);

// RLHF_E_INVALID when the arrays contradict n, total, max_q or max_k, or hold negative numbers.
rlhf_status rlhf__ref_ragged_check(struct rlhf__ref *r, const rlhf_ragged *g);

// RLHF_E_INVALID when the geometry is impossible; r->op is set to op.
rlhf_status rlhf__ref_attn_check(struct rlhf__ref *r, const char *op, const rlhf_attn *a);

// Bytes that `tokens` tokens with `stride` elements between them take, heads * head_dim wide.
uint64_t rlhf__ref_attn_bytes(const rlhf_attn *a, uint64_t tokens, int64_t stride);

#endif
