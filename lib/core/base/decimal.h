// decimal.h: writes a number as the shortest decimal that reads back as the same number.
#ifndef RLHF_CORE_BASE_DECIMAL_H
#define RLHF_CORE_BASE_DECIMAL_H

// A number d.ddd x 10^exponent with n digits.
struct rlhf__decimal {
    char digit[17]; // '0' to '9', not NUL-ended; the last is not '0' unless the number is 0
    int n, exponent, negative;
};

// Returns the shortest decimal that reads back as `v`. If several have that length, returns the one
// nearest to `v`. `v` must be finite. [any]
struct rlhf__decimal rlhf__decimal_of(double v);

// Writes a decimal as 120.5 or, if `scientific` is 1, as 1.205e+02. An integer such as 120 gets no
// point. If `scientific` is 0, d->exponent must be from -5 to 16. Returns `out`. [any]
const char *rlhf__decimal_text(const struct rlhf__decimal *d, int scientific, char out[40]);

// Writes the shortest decimal that reads back as `v`. If `real` is 1, ".0" is appended if the
// result would otherwise look like an integer. If `v` is not finite, writes "null". Returns `out`.
// [any]
const char *rlhf__format_double(double v, int real, char out[40]);

// Writes a short decimal that reads back as `v`, both when it is read as a float and when it is
// read as a double and then converted to float. If `v` is not finite, writes "null". Returns `out`.
// [any]
const char *rlhf__format_float(float v, char out[40]);

#endif
