// flops.h: operations of the matrix products of a forward pass, the base of perf/mfu.
#ifndef RLHF_HOST_FLOPS_H
#define RLHF_HOST_FLOPS_H

#include "model/model.h"

// Operations of the matrix products that `model` computes for `heads` of the rows of `full`.
// `tokens` go through the layers (shared prompts once); the LM head is computed for response tokens
// if a head needs it. Attention scores are not counted. [any]
double rlhf__forward_flops(const struct rlhf__model *model, uint32_t heads, int64_t tokens,
                           const rlhf_batch *full);

// Operations of a forward and its backward pass, as a multiple of the forward's: 3, or 2 if the
// trunk is frozen under an adapter and has no weight gradients; 1 without a backward pass. [any]
double rlhf__train_ways(const struct rlhf__model *model, int32_t train);

// The LM head alone. [any]
double rlhf__lm_head_flops(const struct rlhf__model *model, const rlhf_batch *full);

#endif
