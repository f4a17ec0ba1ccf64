// share.h: the part of a minibatch's shards that belongs to a process.
#ifndef RLHF_HOST_TEAM_SHARE_H
#define RLHF_HOST_TEAM_SHARE_H

#include <stdint.h>

struct rlhf__team;

// A zeroed struct, or NULL instead of a struct, means one process and one shard. `shards` is a
// multiple of `ranks`.
struct rlhf__share {
    uint32_t shards;      // parts of a minibatch; 0 = 1
    uint32_t rank, ranks; // rank of this process; number of ranks, 0 = 1
    uint32_t block;       // elements of a block of parameters (blocks.h); 0: RLHF__BLOCK
    // Borrowed. It is NULL if nothing is exchanged, because there is only one process, or because
    // this is a memory estimate.
    struct rlhf__team *team;
};

// rlhf__share_from returns the first shard of a process. rlhf__share_to returns the number after
// its last shard. [any]
static inline uint32_t rlhf__share_from(const struct rlhf__share *s, uint32_t rank) {
    return s->ranks > 1 ? rank * (s->shards / s->ranks) : 0;
}
static inline uint32_t rlhf__share_to(const struct rlhf__share *s, uint32_t rank) {
    return s->ranks > 1 ? (rank + 1) * (s->shards / s->ranks) : s->shards;
}

#endif
