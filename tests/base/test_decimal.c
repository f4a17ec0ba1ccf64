// test_decimal.c: compares the shortest decimals with those that printf and strtod find by trial.
#include "support/scratch.h"

#include "base/decimal.h"

#include <math.h>

static void numbers_are_short_and_exact(void **state) {
    (void)state;
    const struct {
        double v;
        const char *real, *plain;
    } want[] = {{0.1, "0.1", "0.1"},      {10, "10.0", "10"},
                {1e-5, "1e-05", "1e-05"}, {0, "0.0", "0"},
                {-2.5, "-2.5", "-2.5"},   {1.0 / 3, "0.3333333333333333", NULL},
                {1e300, "1e+300", NULL},  {123456789, "123456789.0", "123456789"},
                {NAN, "null", "null"},    {-INFINITY, "null", "null"},
                {4096, "4096.0", "4096"}};
    char out[40];
    for (size_t i = 0; i < CHECK_COUNT(want); i++) {
        assert_string_equal(rlhf__format_double(want[i].v, 1, out), want[i].real);
        if (want[i].plain)
            assert_string_equal(rlhf__format_double(want[i].v, 0, out), want[i].plain);
    }
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        double v;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v)) assert_true(strtod(rlhf__format_double(v, i & 1, out), NULL) == v);
    }
}

static void floats_read_back_as_the_same_bits(void **state) {
    (void)state;
    char out[40];
    assert_string_equal(rlhf__format_float(0.1f, out), "0.1");
    assert_string_equal(rlhf__format_float(-2, out), "-2");
    assert_string_equal(rlhf__format_float(1.0f / 3, out), "0.33333334");
    assert_string_equal(rlhf__format_float(-INFINITY, out), "null");
    uint32_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        float v, own, rounded;
        bits = bits * 1664525u + 1013904223u;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        own = strtof(rlhf__format_float(v, out), NULL);
        rounded = (float)strtod(out, NULL);
        assert_memory_equal(&own, &v, sizeof v);
        assert_memory_equal(&rounded, &v, sizeof v);
    }
}

// The method that decimal.c replaces: print with more and more digits until the text reads back as
// the same number.
static void try_double(double v, char out[40]) {
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(out, 40, "%.*g", digits, v);
        if (strtod(out, NULL) == v) break;
    }
    if (fabs(v) >= 1 && fabs(v) < 1e9 && digits < 10) snprintf(out, 40, "%.10g", v);
}

static void try_float(float v, char out[40]) {
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, 40, "%.*g", digits, (double)v);
        if ((float)strtod(out, NULL) == v) break;
    }
}

static void same(double v) {
    char want[40], out[40];
    if (!isfinite(v)) return;
    try_double(v, want);
    if (strcmp(rlhf__format_double(v, 0, out), want) != 0) fail_msg("%a: %s, not %s", v, out, want);
    const float f = (float)v;
    if (!isfinite(f)) return;
    try_float(f, want);
    if (strcmp(rlhf__format_float(f, out), want) != 0)
        fail_msg("%a as a float: %s, not %s", (double)f, out, want);
}

// Tests a number, and its neighbors as a double and as a float.
static void same_around(double v) {
    const float f = (float)v;
    same(v);
    same(-v);
    same(nextafter(v, INFINITY));
    same(nextafter(v, -INFINITY));
    same((double)f);
    same((double)nextafterf(f, INFINITY));
    same((double)nextafterf(f, -INFINITY));
}

static void as_by_trying(void **state) {
    (void)state;
    uint64_t random = 1;
    same(0);
    same(-0.0);
    for (int e = -1074; e < 1024; e++)
        same_around(ldexp(1, e));
    for (int e = -320; e < 309; e++) {
        char text[40];
        for (int d = 1; d < 10; d += 4) {
            snprintf(text, sizeof text, "%de%d", d, e);
            same_around(strtod(text, NULL));
        }
    }
    for (int i = 0; i < 600; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const double part = (double)(random >> 11) * 0x1p-53;
        same_around(part);                          // all digits
        same_around(ldexp(part, i % 140 - 70));     // around the edges of the exact range
        same_around((double)i / 64);                // a tie of two decimals
        same_around((double)(random >> 40) / 1000); // few digits
        same_around((double)(random >> (i % 12)));  // whole numbers
        same_around(ldexp((double)(random >> 39), -(i % 60))); // floats
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_short_and_exact),
        cmocka_unit_test(floats_read_back_as_the_same_bits),
        cmocka_unit_test(as_by_trying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
