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

// A part of a quantised weight: `count` rows from row `from`. Their blocks begin at byte `at`.
// Sizes are stored, because functions of the SDK's headers cannot be called on the GPU.
struct rlhf__cuda_part {
    int32_t format; // enum rlhf_format
    uint32_t from, count, row_bytes;
    uint32_t elements, block_bytes; // of a block
    uint64_t at;
};

struct rlhf_weight {
    int32_t k, n; // inputs, outputs
    int32_t k_pad,
        n_pad;      // k rounded up to 8, above 64 to 64, n to 64; the padding is zero
    int32_t dtype;  // dtype of ptr, and of the operands that the caller passes
    uint32_t flags; // bits of RLHF_WEIGHT_KNOWN
    int32_t packed; // 1: weight_pack was called, or all rows were put
    // Device, [n_pad, k_pad]: the k inputs of an output are contiguous. Of a quantised weight: the
    // blocks of all rows
    void *ptr;
    int32_t rank;                             // rank of a block-structured weight
    float scale;                              // scale of a block-structured weight
    struct rlhf__cuda_in_block *in_block;     // device [n]; NULL: dense
    uint32_t n_parts;                         // of a quantised weight; 0: not quantised
    int32_t rows_put;                         // number of rows that weight_put has copied
    struct rlhf__cuda_part *part, *host_part; // device and host [n_parts]
};

// The size in bytes of a block-structured weight, or of its gradient, when stored as a dense
// matrix.
static inline uint64_t rlhf__cuda_dense_bytes(const rlhf_weight *w) {
    return (uint64_t)w->k * (uint64_t)w->n * sizeof(float);
}

// The size in bytes of the values of a weight, in the layout of `ptr`.
static inline uint64_t rlhf__cuda_values_bytes(const rlhf_weight *w) {
    return (uint64_t)w->n_pad * (uint64_t)w->k_pad * rlhf_dtype_size(w->dtype);
}

// Sets *values to the values of a weight, in the layout of `ptr`. Those of a quantised weight are
// dequantised to a workspace, which the next call overwrites. [step]
rlhf_status rlhf__cuda_weight_values(struct rlhf__cuda *cu, const rlhf_weight *w,
                                     const void **values);

// Adds the workspace of rlhf__cuda_weight_values. [step]
void rlhf__cuda_values_needs(const rlhf_weight *w, struct rlhf__cuda_needs *n);

// rlhf__cuda_weight_check returns RLHF_OK if a weight with these arguments can be created;
// rlhf__cuda_weight_packed, if the weight has its values; rlhf__cuda_weight_dense, if it is not
// quantised, so that it has an f32 source and a gradient. Otherwise RLHF_E_INVALID or
// RLHF_E_UNSUPPORTED. [step]
rlhf_status rlhf__cuda_weight_check(struct rlhf__cuda *cu, int32_t k, int32_t n, int32_t dtype,
                                    uint32_t flags);
rlhf_status rlhf__cuda_weight_packed(struct rlhf__cuda *cu, const char *op, const rlhf_weight *w);
rlhf_status rlhf__cuda_weight_dense(struct rlhf__cuda *cu, const char *op, const rlhf_weight *w);

// A weight with these arguments but without memory, for computing sizes.
struct rlhf_weight rlhf__cuda_weight_shape(const rlhf_call_weight *w);

#endif
