// transformer/tensor.h: device memory of a model: buffers, parameter tensors, and the low-rank
// pairs of adapters.
#ifndef RLHF_MODELS_TRANSFORMER_TENSOR_H
#define RLHF_MODELS_TRANSFORMER_TENSOR_H

#include "core.h"

// A device buffer that only grows, each time by at least a sixteenth. Growing it loses its
// contents.
struct rlhf__tf_buf {
    rlhf_dev p;
    uint64_t bytes;
};

// The location of a tensor's values. TF_STAYS: in m->values. TF_PASSES: in an allocation of its
// own, only from when the first of them is filled until all have been packed. TF_BLOCKS: nowhere,
// because its rows stay quantised in a weight. TF_BORROWED: in the base model's memory.
enum rlhf__tf_place { TF_STAYS, TF_PASSES, TF_BLOCKS, TF_BORROWED };

// A parameter tensor, f32: its values and, if it is trained, its gradients.
struct rlhf__tf_tensor {
    rlhf_dev value, grad;
    uint64_t n, filled;     // elements; elements filled so far, with TF_PASSES
    int32_t place, trained; // enum rlhf__tf_place; trained 1: it has a gradient
};

// The matrix products of a layer, in the order of the forward pass.
enum rlhf__tf_site { TF_SITE_QKV, TF_SITE_PROJ, TF_SITE_FC, TF_SITE_OUT, TF_N_SITE };

struct rlhf__tf_span {
    int32_t from, count;
};

// The adapter of one matrix product. A product can compute several linear layers of the checkpoint;
// n_blocks of them have an adapter. block[i] is the range of the product's outputs that the i-th of
// these linear layers computes.
enum { TF_MAX_PIECES = 4 };

// The formats (enum rlhf_format) of a matrix whose rows stay quantised: those of its pieces, by
// rows. n = 0: the matrix is not quantised.
struct rlhf__tf_parts {
    int32_t n;
    int32_t from[TF_MAX_PIECES], count[TF_MAX_PIECES], format[TF_MAX_PIECES];
};

struct rlhf__tf_low {
    int32_t n_blocks;
    struct rlhf__tf_span block[TF_MAX_PIECES];
    struct rlhf__tf_tensor a, b; // [n_blocks * rank, inputs], [outputs of the blocks, rank]
    rlhf_weight *down, *up;      // A, and scale times B
};
struct rlhf__tf_layer_low {
    struct rlhf__tf_low of[TF_N_SITE];
};

#endif
