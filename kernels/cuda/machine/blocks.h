// blocks.h: a list of allocations, which finds the allocation that contains an address.
#ifndef RLHF_CUDA_MACHINE_BLOCKS_H
#define RLHF_CUDA_MACHINE_BLOCKS_H

#include <stdint.h>

struct rlhf__cuda_block {
    char *at;
    uint64_t bytes;
    uint64_t serial; // each allocation of the context gets a larger number
};

struct rlhf__cuda_blocks {
    struct rlhf__cuda_block *all; // all blocks, sorted by address
    uint32_t n, cap;
};

// Returns 0 if memory runs out. [step]
int rlhf__cuda_blocks_add(struct rlhf__cuda_blocks *l, void *at, uint64_t bytes, uint64_t serial);

// Returns the block that contains p, or an empty block that starts at p. Returns NULL if neither
// exists. The result is valid until the list changes.
struct rlhf__cuda_block *rlhf__cuda_blocks_find(const struct rlhf__cuda_blocks *l, const void *p);

void rlhf__cuda_blocks_remove(struct rlhf__cuda_blocks *l, struct rlhf__cuda_block *b);

#endif
