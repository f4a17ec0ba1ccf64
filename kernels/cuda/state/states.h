// states.h: the rows and the states of conv and delta (rlhf_states), and how kernels read and check
// them. Of rlhf_ragged, these operations read offset and, in the training layout (states NULL), the
// prefix arrays.
#ifndef RLHF_CUDA_STATE_STATES_H
#define RLHF_CUDA_STATE_STATES_H

#include "machine/context.h"

// A kernel argument. In the training layout, from and to are NULL.
struct rlhf__cuda_states {
    const int32_t *offset, *prefix_base, *prefix_len, *from, *to;
    char *state;
    int64_t stride, slots; // bytes between states; how many have memory
    uint32_t n, total, max_q;
    struct rlhf__fault *fault;
};

// A row: its tokens are t0 .. t0+n-1. If np > 0, it continues the np tokens from p0 on. The state
// with which it begins, and the place of its last one; NULL: zeros, and nowhere.
struct rlhf__cuda_state_row {
    int32_t t0, n, p0, np;
    const char *from;
    char *to;
};

// Copies the caller's structs. `bytes` is the size of a state. [step]
rlhf_status rlhf__cuda_read_states(struct rlhf__cuda *cu, const char *op,
                                   struct rlhf__cuda_states *out, const rlhf_ragged *rows,
                                   const rlhf_states *states, uint64_t bytes);

// True if row i continues an earlier row in the training layout.
static __device__ __forceinline__ bool rlhf__cuda_row_shares(const rlhf__cuda_states &s,
                                                             uint32_t i) {
    return s.prefix_len && s.prefix_len[i] > 0;
}

// Set *row to row i. If its numbers contradict each other, raises a fault and returns 0; the caller
// then skips the row. All threads get the same result.
static __device__ __forceinline__ int
rlhf__cuda_state_row_check(const rlhf__cuda_states &s, uint32_t i, rlhf__cuda_state_row *row) {
    row->t0 = s.offset[i];
    row->n = (int32_t)((uint32_t)s.offset[i + 1] - (uint32_t)row->t0);
    row->np = s.prefix_len ? s.prefix_len[i] : 0;
    row->p0 = row->np ? s.prefix_base[i] : 0;
    const int32_t from = s.from ? s.from[i] : -1, to = s.to ? s.to[i] : -1;
    row->from = from >= 0 ? s.state + from * s.stride : NULL;
    row->to = to >= 0 ? s.state + to * s.stride : NULL;
    const int64_t n = (int64_t)s.offset[i + 1] - row->t0;
    int code = RLHF__FAULT_NONE;
    int64_t value = 0, limit = 0;
    if (row->t0 < 0 || n < 0 || row->t0 + n > s.total)
        code = RLHF__FAULT_RAGGED_OFFSET, value = row->t0 + n, limit = s.total;
    else if (n > s.max_q)
        code = RLHF__FAULT_RAGGED_QUERIES, value = n, limit = s.max_q;
    else if (from < -1 || from >= s.slots || to < -1 || to >= s.slots)
        code = RLHF__FAULT_STATE_SLOT, value = from < -1 || from >= s.slots ? from : to,
        limit = s.slots;
    else if (row->np) {
        int32_t p0 = -1, np = 0;
        if (i) {
            np = s.prefix_len[i - 1];
            p0 = np ? s.prefix_base[i - 1] : s.offset[i - 1];
            if (!np) np = row->t0 - s.offset[i - 1];
        }
        if (row->p0 != p0 || row->np != np)
            code = RLHF__FAULT_STATE_PREFIX, value = row->p0, limit = p0;
    }
    if (code) rlhf__fault_raise(s.fault, code, i, value, limit);
    return !code;
}

#endif
