// policy_rows.h: lays out a slice of rows as algorithms see them: first the prompt, then only the
// tokens that the policy wrote, without those of the environment. This layout is used only for rows
// of several turns (rlhf__rows.turn). shared_batch.h has the other two layouts of a slice.
//
// This file lays out ids and offsets, and copies numbers between this layout and the full one.
// learn/policy_view.h calls the algorithm.
#ifndef RLHF_HOST_BATCH_POLICY_ROWS_H
#define RLHF_HOST_BATCH_POLICY_ROWS_H

#include "batch/rows.h"

// Zero-initialize; release with rlhf__policy_rows_finish, even after a failure.
struct rlhf__policy_rows {
    uint32_t n, total;
    int32_t *offset; // [n + 1]
    int32_t *ids;    // [total]
    int32_t *turn;   // [total] -1 for prompts, then ascending from 0
    int32_t *at;     // [total] each token's index in the full slice
    // Space for arrays of `total` floats. room: the number of arrays that fit. used: how many of
    // these are taken.
    float *numbers;
    uint32_t used, room;
};

// Lay out rows [from, to) of e, which must have turns. Reserves space for `arrays` copies, one for
// each later call of rlhf__policy_rows_take, and invalidates earlier copies. prompt_len and arrays
// with one entry per row are borrowed from e. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__policy_rows_fill(struct rlhf__policy_rows *, const struct rlhf__rows *e,
                                   uint32_t from, uint32_t to, uint32_t arrays,
                                   struct rlhf__error *err);
void rlhf__policy_rows_finish(struct rlhf__policy_rows *); // accepts a zeroed struct [any]

// Copies `full`, a per-token array of the full slice, to this layout and returns the copy. Returns
// NULL if `full` is NULL. The copy is valid until the next rlhf__policy_rows_fill. The argument
// `arrays` of that function limits the number of calls before the next fill. [any]
float *rlhf__policy_rows_take(struct rlhf__policy_rows *, const float *full);
// The same for an array of bytes. These calls count toward the same limit. [any]
uint8_t *rlhf__policy_rows_take_bytes(struct rlhf__policy_rows *, const uint8_t *full);

// Copy `own`, an array of this layout, back to `full`, an array of the full slice. Does not write
// the entries of the environment's tokens, so the caller must have set these entries of `full` to
// 0. Does nothing if either pointer is NULL. [any]
void rlhf__policy_rows_put(const struct rlhf__policy_rows *, float *full, const float *own);

#endif
