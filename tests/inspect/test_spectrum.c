// test_spectrum.c: compares computed singular values with the known singular values of constructed
// matrices. Also tests ranks.
#include "support/check.h"

#include "inspect/spectrum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void values_of(const float *x, size_t rows, size_t cols, double *value) {
    struct rlhf__error err;
    assert_int_equal(rlhf__singular_values(x, rows, cols, NULL, value, &err), RLHF_OK);
}

// x = the sum of value[k] u_k v_k^T, where u_k and v_k are rows of orthonormal cosines.
static float *make(size_t rows, size_t cols, const double *value, size_t n) {
    const double pi = 3.14159265358979323846;
    float *x = calloc(rows * cols, sizeof *x);
    assert_non_null(x);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++) {
                const double j = (double)k + 1;
                const double u =
                    sqrt(2.0 / (double)rows) * cos(pi * j * ((double)r + 0.5) / (double)rows);
                const double v =
                    sqrt(2.0 / (double)cols) * cos(pi * j * ((double)c + 0.5) / (double)cols);
                sum += value[k] * u * v;
            }
            x[r * cols + c] = (float)sum;
        }
    return x;
}

static void check(size_t rows, size_t cols) {
    const double want[] = {5, 3, 3, 0.25, 0.01};
    const size_t n = rows < cols ? rows : cols;
    double *got = calloc(n, sizeof *got);
    float *x = make(rows, cols, want, 5);
    values_of(x, rows, cols, got);
    for (size_t k = 0; k < n; k++) {
        const double w = k < 5 ? want[k] : 0;
        if (fabs(got[k] - w) > 2e-6)
            fail_msg("%zu x %zu: value %zu is %g, not %g", rows, cols, k, got[k], w);
    }
    assert_int_equal(rlhf__rank_above(got, n, 1e-5), 5);
    assert_int_equal(rlhf__rank_above(got, n, 0.1), 4);
    free(got);
    free(x);
}

static void known_values(void **state) {
    (void)state;
    check(6, 6);
    check(7, 300); // wide, and more than one block of rows
    check(300, 7);
    check(131, 129);
}

static void small_and_empty(void **state) {
    (void)state;
    const float one[] = {-3}, zero[12] = {0}, row[] = {3, 4};
    double v[4];
    values_of(one, 1, 1, v);
    assert_true(v[0] == 3);
    values_of(row, 1, 2, v);
    assert_true(fabs(v[0] - 5) < 1e-12);
    values_of(zero, 3, 4, v);
    assert_true(v[0] == 0 && v[1] == 0 && v[2] == 0);
    assert_true(rlhf__effective_rank(v, 3) == 0);
    assert_int_equal(rlhf__rank_above(v, 3, 0), 0);
}

static void effective_ranks(void **state) {
    (void)state;
    const double equal[] = {2, 2, 2, 2}, single[] = {7, 0, 0}, halves[] = {3, 1};
    assert_true(fabs(rlhf__effective_rank(equal, 4) - 4) < 1e-12);
    assert_true(fabs(rlhf__effective_rank(single, 3) - 1) < 1e-12);
    // exp(-(0.75 ln 0.75 + 0.25 ln 0.25))
    assert_true(fabs(rlhf__effective_rank(halves, 2) - 1.7547654) < 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(small_and_empty),
        cmocka_unit_test(effective_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
