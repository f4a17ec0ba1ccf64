// state.h: the rows and states of the operations that have a state (conv, delta).
//
// Of rlhf_ragged, these operations read offset and, in the training layout (states NULL), the
// prefix arrays.
#ifndef RLHF_KERNELS_REFERENCE_STATE_H
#define RLHF_KERNELS_REFERENCE_STATE_H

#include "context.h"

// The rows of a call, and their states.
struct rlhf__ref_rows {
    rlhf_ragged g;
    rlhf_states s; // s.state is NULL in the training layout
    int32_t with_states;
    uint64_t bytes; // of a state
};

// One row: its first token, the number of its tokens, and those of its prefix (np 0: none).
struct rlhf__ref_row {
    uint64_t t0, n, p0, np;
};

// Copies the caller's structs, and sets r->op to `op`. `bytes` is the size of a state. If `states`
// is NULL, the call is in the training layout. Errors: RLHF_E_INVALID.
rlhf_status rlhf__ref_rows_read(struct rlhf__ref *r, const char *op, struct rlhf__ref_rows *out,
                                const rlhf_ragged *rows, const rlhf_states *states, uint64_t bytes);

// The device arrays of the rows, as initializers for elements of struct rlhf__ref_use.
#define RLHF__REF_ROWS_USES(w)                                                                     \
    rlhf__ref_range((w)->g.offset, (w)->g.n + 1ull, sizeof(int32_t)),                              \
        rlhf__ref_optional((w)->g.prefix_base, (w)->g.n, sizeof(int32_t)),                         \
        rlhf__ref_optional((w)->g.prefix_len, (w)->g.n, sizeof(int32_t)), {(w)->s.state, 0},       \
        rlhf__ref_range((w)->s.from, (w)->with_states ? (w)->g.n : 0, sizeof(int32_t)),            \
        rlhf__ref_range((w)->s.to, (w)->with_states ? (w)->g.n : 0, sizeof(int32_t))

// Returns RLHF_E_INVALID if the arrays contradict each other or the layout. The arrays must be
// accessible.
rlhf_status rlhf__ref_rows_check(struct rlhf__ref *r, const struct rlhf__ref_rows *w);

// Row i. In a call with states, rows lack prefixes.
struct rlhf__ref_row rlhf__ref_row_at(const struct rlhf__ref_rows *w, uint32_t i);

// The state with which row i begins, and the place of its last state; NULL: zeros, and nowhere.
void *rlhf__ref_state_from(const struct rlhf__ref_rows *w, uint32_t i);
void *rlhf__ref_state_to(const struct rlhf__ref_rows *w, uint32_t i);

// The number of bytes of `rows` rows that are `stride` elements apart and have `width` elements.
uint64_t rlhf__ref_strided(uint64_t rows, int64_t stride, uint64_t width, int32_t dtype);

#endif
