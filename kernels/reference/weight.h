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

// A part of a quantised weight: `count` rows from row `from`, whose blocks begin at byte `at`.
struct rlhf__ref_part {
    int32_t format, from, count, reserved;
    uint64_t at;
};

struct rlhf_weight {
    int32_t k, n, dtype;
    uint32_t flags;
    int32_t packed;
    int32_t rank;                  // block-structured weight: its rank, otherwise 0
    uint64_t source_rows;          // block-structured weight: number of rows of its source
    float scale;                   // block-structured weight: factor of the source
    struct rlhf__ref_block *block; // [n], or NULL
    struct rlhf__ref_part *part;   // quantised weight: its parts, otherwise NULL
    uint32_t n_parts;
    int32_t rows_put;      // quantised weight: number of rows that weight_put has copied
    uint64_t blocks_bytes; // quantised weight: size of `blocks`
    uint8_t *blocks;       // quantised weight: the blocks of all rows, as they are in a file
    float w[];             // [k, n], whatever the layout of the source
};

// Returns RLHF_E_INVALID if w is NULL or not packed yet, or if it lacks a flag that is in `flags`.
// Sets r->op to `op`.
rlhf_status rlhf__ref_check_weight(struct rlhf__ref *r, const char *op, const rlhf_weight *w,
                                   uint32_t flags);

// Returns RLHF_E_INVALID if w is quantised, because `op` then has no meaning. Sets r->op to `op`.
rlhf_status rlhf__ref_check_dense(struct rlhf__ref *r, const char *op, const rlhf_weight *w);

// Implements weight_create and weight_destroy of the table (rlhf/compute.h). [step]
rlhf_status rlhf__ref_weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                    rlhf_weight **out);
void rlhf__ref_weight_destroy(void *ctx, rlhf_weight *w);

// The bytes that weight_create adds to bytes_in_use.
static inline uint64_t rlhf__ref_weight_bytes(int32_t k, int32_t n) {
    return sizeof(rlhf_weight) + sizeof(float) * (uint64_t)k * (uint64_t)n;
}

#endif
