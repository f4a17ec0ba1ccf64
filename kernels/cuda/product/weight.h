// weight.h: a packed weight of the CUDA backend. Both the forward GEMM and linear_dx use the same
// copy.
#ifndef RLHF_CUDA_WEIGHT_H
#define RLHF_CUDA_WEIGHT_H

#include "machine/context.h"

// One output of a block-structured weight. `source` is the row of the source that belongs to this
// output (-1: none), and `first` is the first input that the row covers.
struct rlhf__cuda_in_block {
    int32_t source, first;
};

struct rlhf_weight {
    int32_t k, n; // inputs, outputs
    int32_t k_pad,
        n_pad;      // k rounded up to 8, above 64 to 64, n to 64; the padding is zero
    int32_t dtype;  // dtype of ptr, and of the operands that the caller passes
    uint32_t flags; // bits of RLHF_WEIGHT_KNOWN
    int32_t packed; // 1: weight_pack was called
    void *ptr;      // device, [n_pad, k_pad]: the k inputs of an output are contiguous
    int32_t rank;   // rank of a block-structured weight
    float scale;    // scale of a block-structured weight
    struct rlhf__cuda_in_block *in_block; // device [n]; NULL: dense
};

// The size in bytes of a block-structured weight, or of its gradient, when stored as a dense
// matrix.
static inline uint64_t rlhf__cuda_dense_bytes(const rlhf_weight *w) {
    return (uint64_t)w->k * (uint64_t)w->n * sizeof(float);
}

// A weight with these arguments but without memory, for computing sizes.
struct rlhf_weight rlhf__cuda_weight_shape(const rlhf_call_weight *w);

#endif
