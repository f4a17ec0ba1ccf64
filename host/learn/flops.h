// flops.h: how many operations the products of a forward are, the base of perf/mfu.
#ifndef RLHF_HOST_FLOPS_H
#define RLHF_HOST_FLOPS_H

#include "model/model.h"

// Operations of the products that `model` makes for `heads` of the rows of `full`, of which
// `tokens` go through it (shared prompts once): the layers for each of these, the language model's
// head for response tokens where a head asks for it. Attention scores are not counted. [any]
double rlhf__forward_flops(const struct rlhf__model *model, uint32_t heads, int64_t tokens,
                           const rlhf_batch *full);

// How many times these a forward and its backward are: 3, or 2 where the trunk is frozen behind an
// adapter and takes no gradients of its own; 1 without a backward. [any]
double rlhf__train_ways(const struct rlhf__model *model, int32_t train);

// The language model's head alone. [any]
double rlhf__lm_head_flops(const struct rlhf__model *model, const rlhf_batch *full);

#endif
