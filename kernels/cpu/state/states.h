// states.h: reads and checks the rows and the states of conv and delta (rlhf_states).
//
// Of rlhf_ragged, these operations read offset and, in the training layout (states NULL), the
// prefix arrays.
#ifndef RLHF_CPU_STATE_STATES_H
#define RLHF_CPU_STATE_STATES_H

#include "machine/context.h"

struct rlhf__states {
    const int32_t *offset, *from, *to; // from and to are NULL in the training layout
    const int32_t *prefix_len;         // NULL: rows without prefixes
    char *state;
    uint64_t stride;
    uint32_t n, total, max_q;
};

// Copies the caller's structs. `bytes` is the size of a state. Errors: RLHF_E_INVALID, and
// RLHF_E_UNSUPPORTED if a prefix is not the row before those that share it. [step]
rlhf_status rlhf__states_read(struct rlhf__cpu *cpu, const char *op, struct rlhf__states *out,
                              const rlhf_ragged *rows, const rlhf_states *states, uint64_t bytes);

// The first token of row i, and the number of its tokens. [any]
static inline size_t rlhf__states_first(const struct rlhf__states *s, size_t i) {
    return (size_t)s->offset[i];
}
static inline uint32_t rlhf__states_tokens(const struct rlhf__states *s, size_t i) {
    return (uint32_t)(s->offset[i + 1] - s->offset[i]);
}

// True if row i begins with the last state of an earlier row, in the training layout. [any]
static inline int rlhf__states_shares(const struct rlhf__states *s, size_t i) {
    return s->prefix_len && s->prefix_len[i] > 0;
}

// The state with which row i begins, and the place of its last one; NULL: zeros, and nowhere.
// [any]
static inline void *rlhf__states_slot(const struct rlhf__states *s, const int32_t *slot, size_t i) {
    return slot && slot[i] >= 0 ? s->state + (uint64_t)slot[i] * s->stride : NULL;
}

// The row after row i and the rows that share it. Row i shares no prefix. [any]
static inline size_t rlhf__states_next(const struct rlhf__states *s, size_t i) {
    do
        i++;
    while (i < s->n && rlhf__states_shares(s, i));
    return i;
}

#endif
