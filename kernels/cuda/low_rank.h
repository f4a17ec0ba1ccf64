// low_rank.h: what the other files do for a weight in blocks (low_rank.cu).
#ifndef RLHF_CUDA_LOW_RANK_H
#define RLHF_CUDA_LOW_RANK_H

#include "weight.h"

// *src, the source of a weight in blocks, becomes the dense [n, k] matrix, in a workspace. [step]
rlhf_status rlhf__cuda_blocks_expand(struct rlhf__cuda *cu, const rlhf_weight *w,
                                     const float **src);
// dw += scale times what of the dense gradient [n, k] lies in blocks. [step]
rlhf_status rlhf__cuda_blocks_add(struct rlhf__cuda *cu, const rlhf_weight *w, float *dw,
                                  const float *dense);

#endif
