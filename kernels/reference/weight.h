// weight.h: what an rlhf_weight is in the reference backend: its values, rounded to its dtype.
#ifndef RLHF_KERNELS_REFERENCE_WEIGHT_H
#define RLHF_KERNELS_REFERENCE_WEIGHT_H

#include "context.h"

struct rlhf_weight {
    int32_t k, n, dtype;
    uint32_t flags;
    int32_t packed, reserved;
    float w[]; // [k, n], whatever the layout of the source
};

// RLHF_E_INVALID when w is NULL or not packed yet, or lacks a flag in `flags`. r->op is set to op.
rlhf_status rlhf__ref_check_weight(struct rlhf__ref *r, const char *op, const rlhf_weight *w,
                                   uint32_t flags);

#endif
