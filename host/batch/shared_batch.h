// shared_batch.h: a slice of rows in two layouts. Full: every row written out, what algorithms and
// everything else of the host see. Compact: what the model computes, where neighbours of one group
// with the same prompt share it (rlhf_batch.prefix): one row with the prompt but its last token,
// then for each of them its last prompt token and its response.
//
// It moves numbers between the two layouts. It runs no model and chooses no slices (rows.h).
#ifndef RLHF_HOST_SHARED_BATCH_H
#define RLHF_HOST_SHARED_BATCH_H

#include "batch/rows.h"

struct rlhf__shared_batch {
    rlhf_batch full;    // the rows as they are; points into the batch
    rlhf_batch compact; // the same tokens for the model; equal to full when nothing is shared
    int32_t *ints;      // the arrays of both, one block
    size_t ints_cap;
    int32_t *offset;             // [full.n + 1] of full
    int32_t *row;                // [full.n] compact row with the row's last tokens
    int32_t *shared;             // [full.n] tokens of it that are in the prefix, 0 = none
    int32_t is_shared, reserved; // is_shared 1: compact differs from full
};

// Lay out rows [from, to) of e; share = 0: nothing is shared. Arrays are kept from call to call;
// release with rlhf__shared_batch_finish. e must outlive the use. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__shared_batch_fill(struct rlhf__shared_batch *, const struct rlhf__rows *e,
                                    uint32_t from, uint32_t to, int share, struct rlhf__error *err);
void rlhf__shared_batch_finish(struct rlhf__shared_batch *); // accepts a zeroed one [any]

// Per-token numbers from the model's layout to the rows written out: full [full.total, width] =
// compact [compact.total, width]. Every row gets a copy of its prefix's. [any]
void rlhf__shared_batch_expand(const struct rlhf__shared_batch *, float *full, const float *compact,
                               int32_t width);

// The other way round: a prefix gets the numbers of the first row that has it, which is right for
// what depends on the prompt alone and for derivatives, which are 0 on prompts. [any]
void rlhf__shared_batch_contract(const struct rlhf__shared_batch *, float *compact,
                                 const float *full, int32_t width);

// Both for every per-token head that is set on the two sides; not for score and hidden. [any]
void rlhf__shared_heads_expand(const struct rlhf__shared_batch *, const rlhf_heads *full,
                               const rlhf_heads *compact);
void rlhf__shared_heads_contract(const struct rlhf__shared_batch *, const rlhf_heads *compact,
                                 const rlhf_heads *full);

#endif
