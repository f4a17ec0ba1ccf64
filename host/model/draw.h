// draw.h: random numbers for the parameters of a new model.
//
// A number depends on the seed, the stream and its index only, so threads may draw parts of a
// parameter.
#ifndef RLHF_HOST_MODEL_DRAW_H
#define RLHF_HOST_MODEL_DRAW_H

#include <stddef.h>
#include <stdint.h>

struct rlhf__draw {
    uint64_t seed, stream;
    int32_t uniform; // 0: from N(0, 1); 1: from U(-bound, bound)
    int32_t threads; // at most so many; 0: one for each processor
    double bound;
};

// Fill x[n] with the numbers `from` to from + n - 1; `from` is even. [any]
void rlhf__draw(const struct rlhf__draw *, float *x, uint64_t from, size_t n);

#endif
