// ragged.h: functions with which kernels read and check the rows of an attention call, which have
// different lengths (rlhf_ragged).
#ifndef RLHF_CUDA_RAGGED_H
#define RLHF_CUDA_RAGGED_H

#include "machine/context.h"

// A kernel argument: the arrays of an rlhf_ragged (device memory) and the fault word.
struct rlhf__cuda_rows {
    const int32_t *offset, *start, *kv_base, *prefix_base, *prefix_len;
    uint32_t n, total, max_q, max_k;
    int64_t tokens; // number of tokens for which k and v have memory
    int32_t window; // only keys that a query with this window sees need a location; 0: all keys
    struct rlhf__fault *fault;
};

// One row. It has nk keys and the queries t0 .. t0+nq-1; `start` is the position of the first
// query. The row's first np keys are the tokens from p0 onward; the other keys are the tokens from
// k0 onward.
struct rlhf__cuda_row {
    int32_t t0, nq, start, nk, np, p0, k0;
};

// Copy the caller's struct to *rows. Returns RLHF_E_INVALID if only one of the two prefix arrays is
// given. The kernels check the contents of the arrays later. rows->tokens is unlimited, and
// rows->window 0, until the caller sets them. [step]
rlhf_status rlhf__cuda_read_ragged(struct rlhf__cuda *cu, const char *op,
                                   struct rlhf__cuda_rows *rows, const rlhf_ragged *from);

// The token of k and v that holds key j of the row.
static __device__ __forceinline__ int64_t rlhf__cuda_key(const struct rlhf__cuda_row &r,
                                                         int32_t j) {
    return j < r.np ? (int64_t)r.p0 + j : (int64_t)r.k0 + (j - r.np);
}

// Row i, read from the arrays without checks.
static __device__ __forceinline__ struct rlhf__cuda_row
rlhf__cuda_row_at(const struct rlhf__cuda_rows &r, uint32_t i) {
    struct rlhf__cuda_row row;
    row.t0 = r.offset[i];
    row.nq = (int32_t)((uint32_t)r.offset[i + 1] - (uint32_t)row.t0);
    row.start = r.start[i];
    row.nk = (int32_t)((uint32_t)row.start + (uint32_t)row.nq);
    row.k0 = r.kv_base[i];
    row.np = r.prefix_len ? r.prefix_len[i] : 0;
    row.p0 = r.prefix_len ? r.prefix_base[i] : 0;
    return row;
}

// Set *row to row i. If the row's numbers contradict each other or contradict total, max_q, max_k
// or tokens, raises a fault and returns 0; the caller then skips the row. All threads get the same
// result.
static __device__ __forceinline__ int rlhf__cuda_row_check(const struct rlhf__cuda_rows &r,
                                                           uint32_t i, struct rlhf__cuda_row *row) {
    *row = rlhf__cuda_row_at(r, i);
    const int64_t q = (int64_t)r.offset[i + 1] - row->t0, k = (int64_t)row->start + q;
    const int64_t first = r.window && row->start >= r.window ? (int64_t)row->start + 1 - r.window
                                                             : 0; // the first key that is seen
    int code = RLHF__FAULT_NONE;
    int64_t value = 0, limit = 0;
    if (row->t0 < 0 || q < 0 || row->t0 + q > r.total)
        code = RLHF__FAULT_RAGGED_OFFSET, value = row->t0 + q, limit = r.total;
    else if (q > r.max_q)
        code = RLHF__FAULT_RAGGED_QUERIES, value = q, limit = r.max_q;
    else if (row->start < 0 || k > r.max_k)
        code = RLHF__FAULT_RAGGED_KEYS, value = k, limit = r.max_k;
    else if (row->k0 < (first > row->np ? row->np - first : 0))
        code = RLHF__FAULT_RAGGED_BASE, value = row->k0,
        limit = first > row->np ? row->np - first : 0;
    else if (row->np < 0 || row->np > row->start)
        code = RLHF__FAULT_RAGGED_PREFIX, value = row->np, limit = row->start;
    else if (first < row->np && row->p0 < -first)
        code = RLHF__FAULT_RAGGED_PLACE, value = row->p0, limit = -first;
    else if (q && row->k0 + k - row->np > r.tokens)
        code = RLHF__FAULT_RAGGED_END, value = row->k0 + k - row->np - 1, limit = r.tokens;
    else if (q && first < row->np && (int64_t)row->p0 + row->np > r.tokens)
        code = RLHF__FAULT_RAGGED_PREFIX_END, value = (int64_t)row->p0 + row->np - 1,
        limit = r.tokens;
    if (code) rlhf__fault_raise(r.fault, code, i, value, limit);
    return !code;
}

// Like rlhf__cuda_row_check, but also checks the training layout (attention_bwd in rlhf/compute.h).
// A row's prefix must be the prefix of the previous row or, if the previous row has no prefix, the
// previous row itself. So all rows that share a prefix directly follow the row that is the prefix.
static __device__ __forceinline__ int rlhf__cuda_row_check_training(const struct rlhf__cuda_rows &r,
                                                                    uint32_t i,
                                                                    struct rlhf__cuda_row *row) {
    if (!rlhf__cuda_row_check(r, i, row)) return 0;
    int code = RLHF__FAULT_NONE;
    int64_t value = 0, limit = 0;
    if (row->start != row->np)
        code = RLHF__FAULT_TRAINING_START, value = row->start, limit = row->np;
    else if (row->k0 != row->t0)
        code = RLHF__FAULT_TRAINING_BASE, value = row->k0, limit = row->t0;
    else if (row->np) {
        struct rlhf__cuda_row before = {0, 0, 0, 0, 0, 0, 0};
        if (i) before = rlhf__cuda_row_at(r, i - 1);
        const int32_t p0 = before.np ? before.p0 : before.t0;
        const int32_t np = before.np ? before.np : before.nq;
        if (row->p0 != p0 || (int64_t)row->p0 + row->np > row->t0)
            code = RLHF__FAULT_TRAINING_PLACE, value = row->p0, limit = p0;
        else if (row->np != np)
            code = RLHF__FAULT_TRAINING_PREFIX, value = row->np, limit = np;
    }
    if (code) rlhf__fault_raise(r.fault, code, i, value, limit);
    return !code;
}

#endif
