// slice.h: a slice is the same range of elements in each block of a window. A window is exchanged
// slice by slice (sum.h). The functions copy one block's part of a slice to or from a buffer.
#ifndef RLHF_HOST_TEAM_SLICE_H
#define RLHF_HOST_TEAM_SLICE_H

#include "team/sum.h"

// A slice of a window: the same range of elements in each of its blocks.
struct rlhf__slice {
    uint32_t window; // its place in the order
    uint64_t from;   // elements of each block before the slice
};

// Where the numbers of a piece are: its gradient, the copy of it in `aside`, or its value.
enum rlhf__place { RLHF__GRAD, RLHF__ASIDE, RLHF__VALUE };

// How numbers are moved between a block and contiguous memory.
enum rlhf__way {
    RLHF__DOWN, // to host memory
    RLHF__UP,   // from it
    RLHF__OUT,  // to device memory
    RLHF__IN    // from it
};

// Returns the window of a slice. [step]
uint32_t rlhf__slice_window(const struct rlhf__sum *s, struct rlhf__slice p);

// Returns the number of elements that the slice has in a rank's block. [step]
uint64_t rlhf__slice_len(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t rank);

// Returns the slice that follows `p`. [step]
struct rlhf__slice rlhf__slice_next(const struct rlhf__sum *s, struct rlhf__slice p);

// Copy elements between a rank's block and contiguous memory, which is `host` or `dev`. The
// elements are those of the slice `p` in this block. `way` is the direction. Errors: those of the
// table. [step]
rlhf_status rlhf__slice_move(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t rank,
                             enum rlhf__place place, rlhf_dev aside, enum rlhf__way way,
                             float *host, rlhf_dev dev);

// Returns the slice's address if the slice is within one piece of the rank's block, otherwise NULL.
// [step]
rlhf_dev rlhf__slice_whole(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t rank,
                           enum rlhf__place place, rlhf_dev aside);

// Returns the memory in which the slice can be sent or received directly, without a buffer. Returns
// NULL if the slice needs a buffer. [step]
float *rlhf__slice_direct(const struct rlhf__sum *s, struct rlhf__slice p, uint32_t rank,
                          enum rlhf__place place);

#endif
