// spectrum.h: the singular values of a matrix, and its effective rank.
#ifndef RLHF_TOOLS_INSPECT_SPECTRUM_H
#define RLHF_TOOLS_INSPECT_SPECTRUM_H

#include "base/error.h"

#include <signal.h>
#include <stddef.h>

// Write the min(rows, cols) singular values of x [rows, cols] to `value`, the largest first. They
// are the square roots of the eigenvalues of x^T x or x x^T, in f64 (Golub and Van Loan, "Matrix
// Computations", 8.3: Householder tridiagonalization and implicit QL). Values below about 1e-7 of
// the largest are not exact. Errors: RLHF_E_NOMEM, RLHF_E_CANCELLED, RLHF_E_INTERNAL (an eigenvalue
// did not converge). [any]
rlhf_status rlhf__singular_values(const float *x, size_t rows, size_t cols,
                                  const volatile sig_atomic_t *cancelled, double *value,
                                  struct rlhf__error *err);

// Returns the exponential of the entropy of value / sum (Roy and Vetterli 2007, "The effective
// rank"): n if all n values are equal, about 1 if one value is far above the others, and 0 if all
// are 0. [any]
double rlhf__effective_rank(const double *value, size_t n);

// Returns the number of values above `floor`. [any]
size_t rlhf__rank_above(const double *value, size_t n, double floor);

#endif
