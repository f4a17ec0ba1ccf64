// quantised_layout.h: where the parts of a unit of a quantised panel are (unquantise.h), in bytes
// for each column of the panel.
#ifndef RLHF_CPU_QUANTISED_LAYOUT_H
#define RLHF_CPU_QUANTISED_LAYOUT_H

#include <rlhf/compute.h>

#define RLHF__Q4_K_SCALES 4 // three arrays of words
#define RLHF__Q6_K_SCALES 2 // four arrays of words

// The numbers that Q4_1, Q5_1 and Q4_K add.
static inline int rlhf__quantised_adds(int format) {
    return format == RLHF_FORMAT_Q4_1 || format == RLHF_FORMAT_Q5_1 || format == RLHF_FORMAT_Q4_K;
}

// The bits of an integer.
static inline int rlhf__quantised_bits(int format) {
    return format == RLHF_FORMAT_Q8_0                                 ? 8
           : format == RLHF_FORMAT_Q6_K                               ? 6
           : format == RLHF_FORMAT_Q5_0 || format == RLHF_FORMAT_Q5_1 ? 5
                                                                      : 4;
}

// The integers or, where these have 5 or 6 bits, their low 4 bits.
static inline size_t rlhf__quantised_at(int format) {
    return format == RLHF_FORMAT_Q6_K     ? 18
           : format == RLHF_FORMAT_Q4_K   ? 16
           : rlhf__quantised_adds(format) ? 4
                                          : 2;
}

// The high bits of integers of 5 or 6 bits.
static inline size_t rlhf__quantised_high(int format) {
    return rlhf__quantised_at(format) + (size_t)rlhf_format_elements(format) / 2;
}

#endif
