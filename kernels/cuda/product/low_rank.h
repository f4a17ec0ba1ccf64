// low_rank.h: the functions for block-structured weights (low_rank.cu) that other files use.
#ifndef RLHF_CUDA_LOW_RANK_H
#define RLHF_CUDA_LOW_RANK_H

#include "machine/context.h"

// The size in bytes of a block-structured weight, or of its gradient, when stored as a dense
// matrix.
static inline uint64_t rlhf__cuda_dense_bytes(const rlhf_weight *w) {
    return (uint64_t)w->k * (uint64_t)w->n * sizeof(float);
}

// Expand the source *src of the block-structured weight w to a dense [n, k] matrix in a workspace.
// Set *src to that matrix. [step]
rlhf_status rlhf__cuda_blocks_expand(struct rlhf__cuda *cu, const rlhf_weight *w,
                                     const float **src);
// dw += scale times the blocks of the dense gradient [n, k]. [step]
rlhf_status rlhf__cuda_blocks_add(struct rlhf__cuda *cu, const rlhf_weight *w, float *dw,
                                  const float *dense);

#endif
