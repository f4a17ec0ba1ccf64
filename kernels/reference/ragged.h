// ragged.h: the queries and keys of one row of a batch (rlhf_ragged in rlhf/compute.h).
#ifndef RLHF_KERNELS_REFERENCE_RAGGED_H
#define RLHF_KERNELS_REFERENCE_RAGGED_H

#include "context.h"

struct rlhf__ref_span {
    uint64_t q0, nq; // first query token, number of queries
    uint64_t start;  // number of keys before the first query
    uint64_t np;     // number of keys of the shared prefix
    uint64_t nk;     // number of keys including the prefix
    // First key token of the prefix; first one after the prefix. Negative if no query sees it.
    int64_t p0, k0;
};

// The token of key j of the row, which a query must see.
static inline uint64_t rlhf__ref_key(const struct rlhf__ref_span *s, uint64_t j) {
    return (uint64_t)(j < s->np ? s->p0 + (int64_t)j : s->k0 + (int64_t)(j - s->np));
}

// Row i of r. The arrays of r must be accessible. A row may be empty.
struct rlhf__ref_span rlhf__ref_ragged_span(const rlhf_ragged *r, uint32_t i);

// Returns RLHF_E_INVALID if the arrays contradict n, total, max_q or max_k, if a prefix is longer
// than the keys before the first query, or if lengths, or locations of keys that a query with this
// window sees (0: no window), are negative.
rlhf_status rlhf__ref_ragged_check(struct rlhf__ref *r, const rlhf_ragged *g, int32_t window);

// Copies the caller's struct to *g, and sets r->op to `op`. Returns RLHF_E_INVALID if only one of
// the two prefix arrays is given.
rlhf_status rlhf__ref_ragged_read(struct rlhf__ref *r, const char *op, rlhf_ragged *g,
                                  const rlhf_ragged *from);

// The five arrays of g, as initializers for elements of struct rlhf__ref_use.
#define RLHF__REF_RAGGED_USES(g)                                                                   \
    rlhf__ref_range((g)->offset, (g)->n + 1ull, sizeof(int32_t)),                                  \
        rlhf__ref_range((g)->start, (g)->n, sizeof(int32_t)),                                      \
        rlhf__ref_range((g)->kv_base, (g)->n, sizeof(int32_t)),                                    \
        rlhf__ref_optional((g)->prefix_base, (g)->n, sizeof(int32_t)),                             \
        rlhf__ref_optional((g)->prefix_len, (g)->n, sizeof(int32_t))

// Copies the caller's struct to *a, and sets r->op to `op`. If kv_heads is 0, sets it to heads.
// Returns RLHF_E_INVALID if the geometry is impossible.
rlhf_status rlhf__ref_attn_read(struct rlhf__ref *r, const char *op, rlhf_attn *a,
                                const rlhf_attn *from);

// The keys from .. end-1 of a row.
struct rlhf__ref_seen {
    uint64_t from, end;
};

// The keys that query t of the row sees.
struct rlhf__ref_seen rlhf__ref_sees(const rlhf_attn *a, const struct rlhf__ref_span *s,
                                     uint64_t t);

// Returns the number of bytes from the start of the first token to the end of the last one. The
// tokens are `stride` elements apart, and each has heads * head_dim elements.
uint64_t rlhf__ref_attn_bytes(const rlhf_attn *a, int32_t heads, uint64_t tokens, int64_t stride);

#endif
