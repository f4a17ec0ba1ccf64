// diff.h: finite differences, which test whether a backward op is the derivative of its forward op.
//
// The loss is sum_o <r_o, out_o> for fixed numbers r_o. For each input x and several directions u,
// the quotient (loss(x + h u) - loss(x - h u)) / 2h must be <gradient, u>. The loss and inner
// products are computed in double. Precision is limited by ops that store f32.
#ifndef RLHF_TESTS_KERNELS_DIFF_H
#define RLHF_TESTS_KERNELS_DIFF_H

#include "kit.h"

#define DIFF_MAX 4

struct diff {
    const char *name;
    const void *shape;
    uint32_t n_in, n_out;
    uint64_t in_n[DIFF_MAX], out_n[DIFF_MAX];
    float *in[DIFF_MAX];   // current inputs
    float *r[DIFF_MAX];    // derivative of the loss with respect to each output
    float *out[DIFF_MAX];  // filled by forward
    float *grad[DIFF_MAX]; // filled by backward
    // Both functions upload their arguments, call the table through k->c and download the results.
    void (*forward)(struct call *k, struct diff *d);
    void (*backward)(struct call *k, struct diff *d);
};

// Allocates all arrays in host memory of k. Inputs are filled with N(0, scale) from tag 10 + i, and
// r with N(0, 1) from tag 20 + i. The caller may change inputs before diff_check.
void diff_init(struct call *k, struct diff *d, double scale);

// Compares the gradients of all inputs in 6 directions: two over all elements, four over single
// elements. rtol is relative to |gradient| |u|.
void diff_check(rlhf_compute *c, struct diff *d, double h, double rtol);

#endif
