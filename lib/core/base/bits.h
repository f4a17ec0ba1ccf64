// bits.h: which bit of a set of flags to name in a refusal.
#ifndef RLHF_HOST_BITS_H
#define RLHF_HOST_BITS_H

#include <stdint.h>

// The number of the lowest bit of set, which is not 0. [any]
static inline int rlhf__lowest_bit(uint32_t set) {
    int bit = 0;
    while (!(set >> bit & 1))
        bit++;
    return bit;
}

#endif
