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
    int32_t *at;     // [total] each token's index in the full slice
    char *copies;    // room for the copies
    size_t used, room;
};

// Lay out rows [from, to) of e, which must have turns. Reserves space for copies that have
// `per_token` bytes for each token in all, and invalidates earlier copies. Columns with one entry
// per row are borrowed from e. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__policy_rows_fill(struct rlhf__policy_rows *, const struct rlhf__rows *e,
                                   uint32_t from, uint32_t to, size_t per_token,
                                   struct rlhf__error *err);
void rlhf__policy_rows_finish(struct rlhf__policy_rows *); // accepts a zeroed struct [any]

// Copies `full`, an array with `bytes` bytes for each token of the full slice, to this layout and
// returns the copy. Returns NULL if `full` is NULL. The copy is valid until the next
// rlhf__policy_rows_fill, whose `per_token` must cover all copies. [any]
void *rlhf__policy_rows_take(struct rlhf__policy_rows *, const void *full, size_t bytes);

// Copy `own`, an array of this layout with `bytes` bytes for each token, back to `full`, an array
// of the full slice. Does not write the entries of the environment's tokens, so the caller must
// have set these entries of `full` to 0. Does nothing if either pointer is NULL. [any]
void rlhf__policy_rows_put(const struct rlhf__policy_rows *, void *full, const void *own,
                           size_t bytes);

#endif
