// spectrum.h: the singular values of a matrix, and how many directions it has.
#ifndef RLHF_TOOLS_INSPECT_SPECTRUM_H
#define RLHF_TOOLS_INSPECT_SPECTRUM_H

#include "base/error.h"

#include <signal.h>
#include <stddef.h>

// value[k] = the singular values of x [rows, cols], largest first, k = the smaller of both sizes:
// the square roots of the eigenvalues of x^T x or x x^T, in f64 (Golub and Van Loan, "Matrix
// Computations", 8.3: Householder tridiagonalisation and implicit QL). Those below about 1e-7 of
// the largest are not exact. Errors: RLHF_E_NOMEM, RLHF_E_CANCELLED,
// RLHF_E_INTERNAL (an eigenvalue did not converge). [any]
rlhf_status rlhf__singular_values(const float *x, size_t rows, size_t cols,
                                  const volatile sig_atomic_t *cancelled, double *value,
                                  struct rlhf__error *err);

// exp of the entropy of value / sum (Roy and Vetterli 2007, "The effective rank"): n if all n
// values are equal, 1 if one is far above the others; 0 if all are 0. [any]
double rlhf__effective_rank(const double *value, size_t n);

// How many values are above `floor`. [any]
size_t rlhf__rank_above(const double *value, size_t n, double floor);

#endif
