// shared_batch.h: a slice of rows in two layouts.
//
// full     every row written out, as algorithms and the rest of the host see it
// compact  as the model computes it: adjacent rows of one group share their prompt
//          (rlhf_batch.prefix)
//
// In the compact layout, a shared prompt without its last token is a separate row. Each row that
// shares the prompt has only the prompt's last token and the row's response.
//
// A query of a row attends to the keys of the shared prompt and then to the row's own keys. So the
// bits are those of rows written out, because a result depends on the keys and not on where they
// are stored. The backward pass adds the gradients of the prompt's keys and values in row order.
//
// This file copies numbers between the layouts. It runs no model and does not choose slices (see
// rows.h).
#ifndef RLHF_HOST_BATCH_SHARED_BATCH_H
#define RLHF_HOST_BATCH_SHARED_BATCH_H

#include "batch/rows.h"

struct rlhf__shared_batch {
    rlhf_batch full;    // the rows as they are; its arrays belong to the batch of rows
    rlhf_batch compact; // the same rows for the model; equal to `full` if nothing is shared
    int32_t *ints;      // one block with the arrays of both layouts
    size_t ints_cap;
    int32_t *offset;   // [full.n + 1] of the full layout
    int32_t *row;      // [full.n] index of the compact row that holds the end of each row
    int32_t *shared;   // [full.n] number of the row's tokens that are in its prefix, 0 = no prefix
    int32_t is_shared; // 1: `compact` differs from `full`
};

// Lay out rows [from, to) of e, which must stay valid while the result is used. If `share` is 0,
// nothing is shared. Later calls reuse the arrays; release with rlhf__shared_batch_finish. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__shared_batch_fill(struct rlhf__shared_batch *, const struct rlhf__rows *e,
                                    uint32_t from, uint32_t to, int share, struct rlhf__error *err);
void rlhf__shared_batch_finish(struct rlhf__shared_batch *); // accepts a zeroed struct [any]

// Copy per-token numbers from the compact layout, [compact.total, width], to the full layout,
// [full.total, width]. Each row that shares a prefix gets a copy of the prefix's numbers. [any]
void rlhf__shared_batch_expand(const struct rlhf__shared_batch *, float *full, const float *compact,
                               int32_t width);

// Copy numbers from the full to the compact layout. A prefix gets the numbers of the first row that
// shares it. This is correct for numbers that depend only on the prompt, and for derivatives, which
// are 0 for prompts. [any]
void rlhf__shared_batch_contract(const struct rlhf__shared_batch *, float *compact,
                                 const float *full, int32_t width);

// Copy all per-token heads that are set in both arguments: rlhf__shared_heads_expand from the
// compact to the full layout, rlhf__shared_heads_contract back. The heads `score` and `hidden` are
// skipped. [any]
void rlhf__shared_heads_expand(const struct rlhf__shared_batch *, const rlhf_heads *full,
                               const rlhf_heads *compact);
void rlhf__shared_heads_contract(const struct rlhf__shared_batch *, const rlhf_heads *compact,
                                 const rlhf_heads *full);

#endif
