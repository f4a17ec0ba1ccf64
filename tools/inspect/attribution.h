// attribution.h: direct attribution, i.e. how much each part of a model adds to the explained
// number.
//
// With the final norm's scale frozen, the explained number is linear in the stream (direction.h).
// The stream is the sum of the outputs of all parts. A part with the output y contributes g . y.
// The contributions and the constant add up to the number. See Elhage et al. 2021, "A Mathematical
// Framework for Transformer Circuits". The logit lens is from nostalgebraist (2020).
#ifndef RLHF_TOOLS_INSPECT_ATTRIBUTION_H
#define RLHF_TOOLS_INSPECT_ATTRIBUTION_H

#include "inspect/direction.h"

enum rlhf__part_kind {
    RLHF__PART_TOKEN,
    RLHF__PART_POSITION,
    RLHF__PART_ATTENTION, // of a layer: the sum of its heads
    RLHF__PART_ATTENTION_BIAS,
    RLHF__PART_MLP,
    RLHF__PART_MLP_BIAS,
    RLHF__PART_CONSTANT // the norm's bias times the direction, and the head's bias
};

struct rlhf__layer_part {
    int32_t kind, layer; // enum rlhf__part_kind
};

// Set `out` to the name of the part, e.g. "token", "3.attention", "3.mlp bias" or "final bias", and
// return `out`. [any]
const char *rlhf__part_name(const struct rlhf__layer_part *, char out[40]);

// Zero-initialize; release with rlhf__attribution_finish, even after a failure. The numbers are in
// logits, or in units of the reward.
struct rlhf__attribution {
    uint32_t n, n_parts; // tokens; parts
    int32_t layers, heads;
    struct rlhf__layer_part *part; // [n_parts]
    double *contribution;          // [n_parts, n]
    double *head;                  // [layers, n, heads]
    double *out_bias;              // [layers, n] of the bias after attention
    double *sum;                   // [n] of all contributions
    double *accumulated;           // [layers + 1, n] sum of the contributions so far
    double *lens;                  // [layers + 1, n] the number if the model ended there
    double *g;                     // [n, d] the direction at each token
    double *constant;              // [n]
};

// Compute *out. `r` must live as long as *out is used with attention.h. [step]
rlhf_status rlhf__attribution_make(struct rlhf__attribution *out, const struct rlhf__reading *r,
                                   const struct rlhf__direction *dir, struct rlhf__error *err);

void rlhf__attribution_finish(struct rlhf__attribution *); // accepts a zeroed one [any]

#endif
