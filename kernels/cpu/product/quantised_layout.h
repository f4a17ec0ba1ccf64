// quantised_layout.h: where the parts of a unit of a quantised panel are (unquantise.h), in bytes
// for each column of the panel.
#ifndef RLHF_CPU_QUANTISED_LAYOUT_H
#define RLHF_CPU_QUANTISED_LAYOUT_H

#include <rlhf/compute.h>

#define RLHF__Q4_K_SCALES 4   // three arrays of words
#define RLHF__Q6_K_SCALES 2   // four arrays of words
#define RLHF__Q6_K_HIGH   146 // the high bits

// The integers.
static inline size_t rlhf__quantised_at(int format) {
    return format == RLHF_FORMAT_Q6_K   ? 18
           : format == RLHF_FORMAT_Q4_K ? 16
           : format == RLHF_FORMAT_Q4_1 ? 4
                                        : 2;
}

#endif
