// weight.h: a packed weight of the CUDA backend: one copy, read by the forward product and by
// linear_dx alike.
#ifndef RLHF_CUDA_WEIGHT_H
#define RLHF_CUDA_WEIGHT_H

#include "context.h"

struct rlhf_weight {
    int32_t k, n;         // inputs, outputs
    int32_t k_pad, n_pad; // k rounded up to 8, n to 64; what is beyond k and n is zero
    int32_t dtype;        // of ptr and of the operands the caller gives
    uint32_t flags;       // bits of RLHF_WEIGHT_KNOWN
    int32_t packed;       // weight_pack was called
    void *ptr;            // device, [n_pad, k_pad]: the k inputs of an output lie together
};

#endif
