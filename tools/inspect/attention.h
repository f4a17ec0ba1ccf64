// attention.h: the attention of single heads, and how much each token adds to a head's
// contribution.
#ifndef RLHF_TOOLS_INSPECT_ATTENTION_H
#define RLHF_TOOLS_INSPECT_ATTENTION_H

#include "inspect/attribution.h"

// Zero-initialize; release with rlhf__attention_finish, even after a failure.
struct rlhf__attention {
    uint32_t n, n_heads;     // tokens; heads that are kept
    double *weight, *source; // [n_heads, n, n]: of token t to token s; 0 for s > t
    double error; // largest difference between the sum over sources and a head's contribution
};

// `head` lists n_heads heads: head[2 * k] is the layer of entry k, and head[2 * k + 1] is the
// head's number in this layer. weight[k, t, s] is the attention weight of entry k: the softmax of
// scale q_t . k_s, capped if the layer caps scores, over the tokens s that t sees: s <= t, or in a
// layer with a window the last of these. source[k, t, s] is the part of the head's contribution at
// token t that comes from token s. It is the attention weight times the dot product of v_s and the
// head's part of W g_t, where W is the matrix after attention, and g_t is the direction at token t
// (direction.h). [step]
rlhf_status rlhf__attention_take(struct rlhf__attention *out, const struct rlhf__reading *,
                                 const struct rlhf__attribution *, const int32_t *head,
                                 uint32_t n_heads, struct rlhf__error *err);

void rlhf__attention_finish(struct rlhf__attention *); // accepts a zeroed one [any]

#endif
