// outside.h: shared by the tests with constants of other projects.
#ifndef RLHF_TESTS_OUTSIDE_H
#define RLHF_TESTS_OUTSIDE_H

#include "support/check.h"

#include <math.h>

// Asserts that |got - want| is at most half a unit of the last published digit.
static inline void published(double got, double want, double last_digit) {
    if (!(fabs(got - want) <= 0.5001 * last_digit)) fail_msg("got %.9g, published %.9g", got, want);
}

static inline void published_row(const double *got, const double *want, int n, double last_digit) {
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 0.5001 * last_digit))
            fail_msg("[%d]: got %.9g, published %.9g", i, got[i], want[i]);
}

#endif
