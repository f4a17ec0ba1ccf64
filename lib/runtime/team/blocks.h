// blocks.h: divides the parameters of a model into blocks of limited size. Sums of gradients, the
// optimizer's state and the parameters are exchanged block by block, and each block belongs to one
// process. How the parameters are divided does not depend on the number of processes.
#ifndef RLHF_HOST_TEAM_BLOCKS_H
#define RLHF_HOST_TEAM_BLOCKS_H

#include "base/error.h"

#include <rlhf/compute.h>

#define RLHF__BLOCK ((uint64_t)1 << 18) // elements

// Adjacent elements of one tensor.
struct rlhf__piece {
    rlhf_dev grad, value;
    uint64_t len;    // elements
    uint64_t at;     // bytes from the start of the gradients, in each copy of them
    uint64_t from;   // elements of the tensor before the piece
    uint32_t tensor; // number of the tensor
};

// The pieces [first, end) with `len` elements in total.
struct rlhf__block {
    uint32_t first, end;
    uint64_t len;
    uint32_t owner; // rank of the process that owns the block
};

#define RLHF__NO_BLOCK UINT32_MAX

struct rlhf__blocks {
    struct rlhf__piece *piece;
    struct rlhf__block *block;
    uint32_t n_pieces, n;
    uint32_t pieces_cap, cap;
    uint64_t longest; // elements of the longest block
    uint64_t limit;   // elements that blocks may have, set by the caller; 0: RLHF__BLOCK
    uint32_t *dealt;  // the blocks by window and owner; see rlhf__blocks_deal
};

// Append a tensor, which `whole` describes as if it were a single piece. The tensor is cut into
// pieces of at most `limit` elements, unless `one_piece` is 1. A block has at most `limit`
// elements, unless it consists of a single larger piece. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__blocks_add(struct rlhf__blocks *, const struct rlhf__piece *whole, int one_piece,
                             struct rlhf__error *err);
void rlhf__blocks_finish(struct rlhf__blocks *); // accepts a zeroed struct [any]

// Choose an owner for every block, after the last tensor was added. `ranks` consecutive blocks are
// a window. Each rank owns one block of every window; in the last window, some ranks may own none.
// In each window the longest blocks go to the ranks that own the fewest elements so far, because
// all ranks wait for the rank that sends or updates the most. dealt[w * ranks + r] receives the
// block that rank r owns in window w, or RLHF__NO_BLOCK. Without this call, rank 0 owns all blocks.
// Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__blocks_deal(struct rlhf__blocks *, uint32_t ranks, struct rlhf__error *err);

#endif
