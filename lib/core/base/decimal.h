// decimal.h: writes a number as the shortest decimal that reads back as the same number.
#ifndef RLHF_CORE_BASE_DECIMAL_H
#define RLHF_CORE_BASE_DECIMAL_H

// A number d.ddd x 10^exponent with n digits.
struct rlhf__decimal {
    char digit[17]; // '0' to '9', not NUL-ended; the last is not '0' unless the number is 0
    int n, exponent, negative;
};

// Returns the decimal with the fewest digits that reads back as `v` and, among those, the one
// nearest to `v`. `v` must be finite. [any]
struct rlhf__decimal rlhf__decimal_of(double v);

// Writes a decimal as 120.5 or, if `scientific` is 1, as 1.205e+02. An integer such as 120 gets no
// point. If `scientific` is 0, the exponent must be from -5 to 16. Returns `out`. [any]
const char *rlhf__decimal_text(const struct rlhf__decimal *d, int scientific, char out[40]);

// Writes the shortest decimal that reads back as `v`. If `real` is 1, ".0" is added to a text that
// would look like an integer. A number that is not finite gives "null". Returns `out`. [any]
const char *rlhf__format_double(double v, int real, char out[40]);

// Writes a short decimal that reads back as `v` in two ways: when it is read as a float, and when
// it is read as a double that is then converted to float. A number that is not finite gives "null".
// Returns `out`. [any]
const char *rlhf__format_float(float v, char out[40]);

#endif
