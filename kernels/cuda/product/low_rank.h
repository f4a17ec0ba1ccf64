// low_rank.h: the functions for block-structured weights (low_rank.cu) that other files use.
#ifndef RLHF_CUDA_LOW_RANK_H
#define RLHF_CUDA_LOW_RANK_H

#include "machine/context.h"

// Expand the source *src of the block-structured weight w to a dense [n, k] matrix in a workspace.
// Set *src to that matrix. [step]
rlhf_status rlhf__cuda_blocks_expand(struct rlhf__cuda *cu, const rlhf_weight *w,
                                     const float **src);
// dw += scale times the blocks of the dense gradient [n, k]. [step]
rlhf_status rlhf__cuda_blocks_add(struct rlhf__cuda *cu, const rlhf_weight *w, float *dw,
                                  const float *dense);

#endif
