// whiten.h: the mean and variance of response tokens, and whitening with them.
//
// The arrays are contiguous doubles, without the prompt tokens, which the caller has already
// removed.
#ifndef RLHF_ALGOS_COMMON_WHITEN_H
#define RLHF_ALGOS_COMMON_WHITEN_H

#include <stdint.h>

// The number n of values, their mean, and m2, the sum of their squared deviations from the mean.
struct rlhf__moments {
    int64_t n;
    double mean, m2;
};

enum rlhf__whiten_form {
    RLHF__WHITEN_RSQRT = 0, // (x - mean) * rsqrt(biased variance + eps), Ziegler et al. 2019 code
    RLHF__WHITEN_STD = 1    // (x - mean) / (unbiased standard deviation + eps)
};

// Compute the moments of x[n] in two passes. If n is 0, they are all 0. [any]
struct rlhf__moments rlhf__moments(const double *x, int64_t n);

// Moments of the union of two sets (Chan et al. 1979). [any]
struct rlhf__moments rlhf__moments_merge(struct rlhf__moments a, struct rlhf__moments b);

// m2 / n, and m2 / (n - 1). They are 0 if the divisor is not positive. [any]
double rlhf__var_biased(struct rlhf__moments m);
double rlhf__var_unbiased(struct rlhf__moments m);

// Whiten x[n] in place. If shift_mean is 0, the mean is added back after scaling. [any]
void rlhf__whiten(double *x, int64_t n, int32_t form, double eps, int32_t shift_mean);

#endif
