// quantised_speed.h: measures how long products (GEMMs) with quantised weights take. They unpack
// the weight, so they are slower than those of packed weights, and each format has its own speed.
#ifndef RLHF_HOST_ESTIMATE_QUANTISED_SPEED_H
#define RLHF_HOST_ESTIMATE_QUANTISED_SPEED_H

#include <rlhf/compute.h>

// Seconds for each element of a weight, in a product of r rows: many[0] + r many[1], or of few[] up
// to RLHF__QUANTISED_FEW rows. All 0: not measured.
struct rlhf__quantised_speed {
    double few[2], many[2];
    double back; // seconds of linear_dx, divided by those of linear
};

#define RLHF__QUANTISED_FEW 4

// Measures *out with a weight of at most k inputs and n outputs, in some 20 ms on a fast backend.
// `busy`: other programs use the processors, so processor time is measured. If the backend lacks
// quantised weights or fails, *out is all 0. [step]
void rlhf__quantised_speed_measure(const rlhf_compute *, int32_t dtype, int32_t format, int32_t k,
                                   int32_t n, int busy, struct rlhf__quantised_speed *out);

// Returns an estimate of the seconds of linear (`backward`: linear_dx) for n x k elements. [any]
double rlhf__quantised_speed_seconds(const struct rlhf__quantised_speed *, double elements,
                                     uint32_t rows, int backward);

#endif
