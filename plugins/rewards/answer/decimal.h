// decimal.h: exact decimal numbers, stored as digits, so that 0.1 is exactly one tenth. read.h
// parses them from text.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_DECIMAL_H
#define RLHF_PLUGINS_REWARDS_ANSWER_DECIMAL_H

#include <stdint.h>

enum { RLHF__DECIMAL_DIGITS = 128, RLHF__DECIMAL_EXPONENT = 100000 };

// sign * (digits as an integer) * 10^exponent. The first and the last digit are not zero, so each
// number has exactly one representation. For zero, n, sign and exponent are 0.
struct rlhf__answer_decimal {
    int32_t sign, n;
    int64_t exponent;
    char digit[RLHF__DECIMAL_DIGITS]; // '0' to '9'
};

// num / den. `den` is positive; for a number without a fraction, it is 1.
struct rlhf__ratio {
    struct rlhf__answer_decimal num, den;
};

// Normalize digit[0..n); n is at most RLHF__DECIMAL_DIGITS. [any]
void rlhf__decimal_settle(struct rlhf__answer_decimal *);

void rlhf__decimal_set(struct rlhf__answer_decimal *, int32_t value); // 0 to 9 [any]

// Set *out to whole + part, for a mixed number. Both are at least 0, and `whole` is an integer.
// Returns 0 if the result would have too many digits. [any]
int rlhf__ratio_add(const struct rlhf__answer_decimal *whole, const struct rlhf__ratio *part,
                    struct rlhf__ratio *out);

// 1 if a * 10^shift_a == b * 10^shift_b, exactly. [any]
int rlhf__ratio_equal(const struct rlhf__ratio *a, int32_t shift_a, const struct rlhf__ratio *b,
                      int32_t shift_b);

// Returns the number times 10^shift as a double, precise enough for comparisons with a tolerance.
// Returns infinity if the number is too large. [any]
double rlhf__ratio_value(const struct rlhf__ratio *, int32_t shift);

#endif
