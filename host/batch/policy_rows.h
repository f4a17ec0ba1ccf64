// policy_rows.h: a slice of rows in a third layout, beside the two of shared_batch.h: the rows as
// algorithms see them, without the tokens that an environment wrote. Prompts stay.
//
// Lays out ids and offsets and copies numbers to and fro. It calls no algorithm
// (learn/policy_view.h) and is used only for rows of several turns (rlhf__rows.turn).
#ifndef RLHF_HOST_POLICY_ROWS_H
#define RLHF_HOST_POLICY_ROWS_H

#include "batch/rows.h"

// Zero-initialise; release with rlhf__policy_rows_finish, also after a failure.
struct rlhf__policy_rows {
    uint32_t n, total;
    int32_t *offset; // [n + 1]
    int32_t *ids;    // [total]
    int32_t *turn;   // [total] -1 on prompts, then ascending from 0
    int32_t *at;     // [total] place of each token in the full slice, whose first token is 0
    // Arrays that were taken: used of room, `total` floats each.
    float *numbers;
    uint32_t used, room;
};

// Lay out rows [from, to) of e, which has turns, with room for so many taken arrays; earlier ones
// are lost. prompt_len and all arrays by row are those of e. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__policy_rows_fill(struct rlhf__policy_rows *, const struct rlhf__rows *e,
                                   uint32_t from, uint32_t to, uint32_t arrays,
                                   struct rlhf__error *err);
void rlhf__policy_rows_finish(struct rlhf__policy_rows *); // accepts a zeroed one [any]

// An array of the full slice in this layout; valid until the next fill. NULL for NULL. At most
// `arrays` of fill. [any]
float *rlhf__policy_rows_take(struct rlhf__policy_rows *, const float *full);
// The same for bytes, which take the room of an array of floats. [any]
uint8_t *rlhf__policy_rows_take_bytes(struct rlhf__policy_rows *, const uint8_t *full);

// Copy an array of this layout to its places in the full slice. Nothing else is written: given
// tokens keep the 0 that all such arrays have there. Nothing happens if either is NULL. [any]
void rlhf__policy_rows_put(const struct rlhf__policy_rows *, float *full, const float *own);

#endif
