// flops.h: how many operations the products of a forward are, the base of perf/mfu.
#ifndef RLHF_HOST_FLOPS_H
#define RLHF_HOST_FLOPS_H

#include "model/model.h"

// Operations of the products that `model` makes for `heads` of the rows of `full`, of which
// `tokens` go through it (shared prompts once): the layers for each of these, the language model's
// head for response tokens where a head asks for it. Attention scores are not counted. A backward
// has twice as many. [any]
double rlhf__forward_flops(const struct rlhf__model *model, uint32_t heads, int64_t tokens,
                           const rlhf_batch *full);

// The language model's head alone. [any]
double rlhf__lm_head_flops(const struct rlhf__model *model, const rlhf_batch *full);

#endif
