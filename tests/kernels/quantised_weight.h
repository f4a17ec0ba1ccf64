// quantised_weight.h: weights with random blocks, for tests of weights whose rows stay quantised.
#ifndef RLHF_TESTS_KERNELS_QUANTISED_WEIGHT_H
#define RLHF_TESTS_KERNELS_QUANTISED_WEIGHT_H

#include "kit.h"

enum { QUANTISED_PARTS = 3 };

struct quantised_shape {
    int32_t k;
    uint32_t n_parts;
    int32_t format[QUANTISED_PARTS], count[QUANTISED_PARTS];
};

enum {
    Q8_0 = RLHF_FORMAT_Q8_0,
    Q4_0 = RLHF_FORMAT_Q4_0,
    Q4_1 = RLHF_FORMAT_Q4_1,
    Q4_K = RLHF_FORMAT_Q4_K,
    Q6_K = RLHF_FORMAT_Q6_K,
    Q5_0 = RLHF_FORMAT_Q5_0,
    Q5_1 = RLHF_FORMAT_Q5_1
};

int32_t quantised_outputs(const struct quantised_shape *);

// The arguments of weight_create_quantised. Arrays are borrowed from the shape.
rlhf_quantised quantised_arguments(const struct quantised_shape *, int32_t dtype);

// A weight of the call, with all its rows. The same shape gives the same blocks.
rlhf_weight *quantised_weight(struct call *, const struct quantised_shape *, int32_t dtype);

#endif
