// weight.h: the struct rlhf_weight of the reference backend. The values are rounded to the weight's
// dtype.
#ifndef RLHF_KERNELS_REFERENCE_WEIGHT_H
#define RLHF_KERNELS_REFERENCE_WEIGHT_H

#include "context.h"

// One output of a block-structured weight (rlhf_blocks). `source` is the row of the source that
// belongs to this output (-1: none), and `first` is the first input that the row covers.
struct rlhf__ref_block {
    int32_t source, first;
};

struct rlhf_weight {
    int32_t k, n, dtype;
    uint32_t flags;
    int32_t packed;
    int32_t rank;                  // block-structured weight: its rank, otherwise 0
    uint64_t source_rows;          // block-structured weight: number of rows of its source
    float scale;                   // block-structured weight: factor of the source
    struct rlhf__ref_block *block; // [n], or NULL
    float w[];                     // [k, n], whatever the layout of the source
};

// Returns RLHF_E_INVALID if w is NULL or not packed yet, or if it lacks a flag that is in `flags`.
// Sets r->op to `op`.
rlhf_status rlhf__ref_check_weight(struct rlhf__ref *r, const char *op, const rlhf_weight *w,
                                   uint32_t flags);

#endif
