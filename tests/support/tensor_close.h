// tensor_close.h: compares arrays of numbers in tests, and reports differences usefully.
//
// Header only, so a test does not need a library. Only for CMocka tests.
#ifndef RLHF_TESTS_SUPPORT_TENSOR_CLOSE_H
#define RLHF_TESTS_SUPPORT_TENSOR_CLOSE_H

#include "check.h"
#include <math.h>
#include <stdio.h>

// Returns true if |got - want| <= atol + rtol |want|. A value that is not finite must equal the
// other value.
static inline int tensor_close_one(double got, double want, double rtol, double atol) {
    if (isnan(want)) return isnan(got);
    if (!isfinite(want) || !isfinite(got)) return got == want;
    return fabs(got - want) <= atol + rtol * fabs(want);
}

// Compares got[n] with want[n]. If elements are not close, prints the first five of them, their
// number and the largest difference, and fails the test.
static inline void assert_tensor_close(const float *got, const float *want, size_t n, double rtol,
                                       double atol, const char *label) {
    size_t bad = 0;
    double worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double g = (double)got[i], w = (double)want[i];
        if (tensor_close_one(g, w, rtol, atol)) continue;
        if (bad++ < 5)
            fprintf(stderr, "%s[%zu]: got %.9g, want %.9g (difference %.3g)\n", label, i, g, w,
                    g - w);
        if (fabs(g - w) > worst || isnan(g - w)) worst = fabs(g - w);
    }
    if (bad)
        fail_msg("%s: %zu of %zu elements differ, by up to %.3g (rtol %g, atol %g)", label, bad, n,
                 worst, rtol, atol);
}

#endif
