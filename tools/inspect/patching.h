// patching.h: activation patching between two models, i.e. how the base's number changes if the
// output of one part is replaced by the part's output in the tuned model.
//
// Attribution shows what a part adds directly. It does not show what the model would do without the
// part's change, because later parts read the part's output. So the base runs again, at all tokens
// of the prompt, with the part's output from the tuned model, and later parts are recomputed (Vig
// et al. 2020; Meng et al. 2022; between two models: Prakash et al. 2024). A part's effect is the
// explained number in that run minus the number in the base. The effects of several parts do not
// add up.
#ifndef RLHF_TOOLS_INSPECT_PATCHING_H
#define RLHF_TOOLS_INSPECT_PATCHING_H

#include "inspect/attribution.h"

// Zero-initialize; release with rlhf__patching_finish, even after a failure.
struct rlhf__patching {
    double *part; // [n_parts, n] effect of each part; biases count with their attention or MLP
    double *head; // [layers, n, heads]
    double *out;  // [n] effect of the final norm and the head that reads it
};

// One of the two models.
struct rlhf__patched_model {
    const struct rlhf__reading *reading;
    const struct rlhf__direction *direction;
};

// 1 if rlhf__patching.part has the effect of this part. [any]
int rlhf__part_is_patched(const struct rlhf__layer_part *);

// Patches the parts one after the other and stores their effects in *out. `a` is the base's
// attribution. `tick` (may be NULL) is called after each layer with the number of layers done. If
// `tick` returns 1, patching ends with RLHF_E_CANCELLED. [step]
rlhf_status rlhf__patching_take(struct rlhf__patching *out, const struct rlhf__patched_model *base,
                                const struct rlhf__patched_model *tuned,
                                const struct rlhf__attribution *a, int (*tick)(void *ctx, int32_t),
                                void *ctx, struct rlhf__error *err);

void rlhf__patching_finish(struct rlhf__patching *); // accepts a zeroed one [any]

#endif
