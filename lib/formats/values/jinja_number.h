// jinja_number.h: the integers of a chat template, which have any size, as in Python, and their
// comparison with floats.
//
// An integer has at most 4300 digits; Python does not print longer ones. This file does not know
// floats apart from comparing and converting (jinja_operator.c does).
#ifndef RLHF_FORMATS_VALUES_JINJA_NUMBER_H
#define RLHF_FORMATS_VALUES_JINJA_NUMBER_H

#include "values/jinja_value.h"

enum { RLHF__JINJA_DIGITS_MAX = 4300 };

// The operators of a template. Those before RLHF__JINJA_OP_CAT are for numbers.
enum rlhf__jinja_op {
    RLHF__JINJA_OP_ADD = 1,
    RLHF__JINJA_OP_SUB,
    RLHF__JINJA_OP_MUL,
    RLHF__JINJA_OP_DIV,
    RLHF__JINJA_OP_FLOOR,
    RLHF__JINJA_OP_MOD,
    RLHF__JINJA_OP_POW,
    RLHF__JINJA_OP_CAT, // ~
    RLHF__JINJA_OP_EQ,
    RLHF__JINJA_OP_NE,
    RLHF__JINJA_OP_LT,
    RLHF__JINJA_OP_LE,
    RLHF__JINJA_OP_GT,
    RLHF__JINJA_OP_GE,
    RLHF__JINJA_OP_IN,
    RLHF__JINJA_OP_NOT_IN
};

// An integer that does not fit into 64 bits: its sign and its absolute value, the lowest 32 bits
// first.
struct rlhf__jinja_big {
    int32_t negative;
    uint32_t n;
    uint32_t limb[];
};

// The operator `op` (+ - * / // % **) on two integers. A quotient is a float; so is a power with a
// negative exponent. [any]
rlhf__value rlhf__jinja_whole(struct rlhf__jinja_work *, int32_t op, rlhf__value a, rlhf__value b);

// Compare two numbers: -1, 0, 1, or 2 if one of them is not a number (NaN). [any]
int rlhf__jinja_compare(rlhf__value a, rlhf__value b);

// The nearest float of a number. Raises an error if the number is too large. [any]
double rlhf__jinja_real(struct rlhf__jinja_work *, rlhf__value v);

// The integer that f becomes without its fraction. Raises an error if f is not finite. [any]
rlhf__value rlhf__jinja_truncated(struct rlhf__jinja_work *, double f);

// The integer whose digits in this base (2 to 36) are s, without a sign. Returns undefined if s has
// another character or is empty. [any]
rlhf__value rlhf__jinja_digits(struct rlhf__jinja_work *, rlhf_str s, uint32_t base);

// The digits of an integer in this base, with a "-" if it is negative. [any]
rlhf_str rlhf__jinja_digits_of(struct rlhf__jinja_work *, rlhf__value v, uint32_t base);

// -1, 0 or 1. [any]
int rlhf__jinja_sign(rlhf__value v);

#endif
