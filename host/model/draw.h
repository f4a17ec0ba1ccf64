// draw.h: random numbers for the parameters of a new model.
//
// A number depends only on the seed, the stream and the number's index, so several threads may draw
// parts of the same parameter.
#ifndef RLHF_HOST_MODEL_DRAW_H
#define RLHF_HOST_MODEL_DRAW_H

#include <stddef.h>
#include <stdint.h>

struct rlhf__draw {
    uint64_t seed, stream;
    int32_t uniform; // 0: from N(0, 1); 1: from U(-bound, bound)
    int32_t threads; // maximum number; 0 = one for each processor
    double bound;
};

// Fill x[n] with the numbers whose indices are `from` to `from` + n - 1. `from` must be even. [any]
void rlhf__draw(const struct rlhf__draw *, float *x, uint64_t from, size_t n);

#endif
