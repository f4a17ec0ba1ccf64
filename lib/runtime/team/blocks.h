// blocks.h: divides the parameters of a model into blocks of about equal size. Sums of gradients,
// the optimizer's state and the parameters are exchanged block by block, and each block belongs to
// one process. How the parameters are divided does not depend on the number of processes.
#ifndef RLHF_HOST_TEAM_BLOCKS_H
#define RLHF_HOST_TEAM_BLOCKS_H

#include "base/error.h"

#include <rlhf/compute.h>

#define RLHF__BLOCK ((uint64_t)1 << 18) // elements

// Adjacent elements of one tensor.
struct rlhf__piece {
    rlhf_dev grad, value;
    uint64_t len;              // elements
    uint64_t at;               // bytes from the start of the gradients, in each copy of them
    uint64_t from;             // elements of the tensor before the piece
    uint32_t tensor, reserved; // number of the tensor
};

// The pieces [first, end) with `len` elements in total.
struct rlhf__block {
    uint32_t first, end;
    uint64_t len;
};

struct rlhf__blocks {
    struct rlhf__piece *piece;
    struct rlhf__block *block;
    uint32_t n_pieces, n;
    uint32_t pieces_cap, cap;
    uint64_t longest; // elements of the longest block
    uint64_t limit;   // elements that blocks may have, set by the caller; 0: RLHF__BLOCK
};

// Append a tensor, which `whole` describes as if it were a single piece. The tensor is cut into
// pieces of at most `limit` elements, unless `one_piece` is 1. A block has at most `limit`
// elements, unless it consists of a single larger piece. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__blocks_add(struct rlhf__blocks *, const struct rlhf__piece *whole, int one_piece,
                             struct rlhf__error *err);
void rlhf__blocks_finish(struct rlhf__blocks *); // accepts a zeroed struct [any]

// Returns the rank of the process that owns block `b`. [any]
static inline uint32_t rlhf__block_owner(uint32_t b, uint32_t ranks) {
    return ranks > 1 ? b % ranks : 0;
}

#endif
