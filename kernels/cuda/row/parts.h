// parts.h: adds up the sums of chunks of rows.
#ifndef RLHF_CUDA_PARTS_H
#define RLHF_CUDA_PARTS_H

#include "machine/context.h"

// For each list l, to[l][c] += the sum of part[i, l, c] over the chunks i, in a fixed order. If
// to[l] is NULL, list l is skipped. `part` is f32 [chunks, lists, d], and `lists` is at most 2. The
// function announces its writes. [step]
rlhf_status rlhf__cuda_add_parts(struct rlhf__cuda *cu, float *const to[2], const float *part,
                                 uint32_t chunks, uint32_t lists, uint32_t d);

#endif
