// read.h: reads numbers in the forms that people and models write.
//
//     12   -3.5   .5   1,234,567   1{,}234   1\,234   1.5e-3   1.5 \times 10^{3}   3/4   2 1/2
//     \frac{3}{4}   \frac34   2\frac{1}{2}   50%   5 million   $1,200   18 apples   9 cm^2
//
// Callers must clean texts first (clean.h). Nothing is calculated: "3+4", "\sqrt{2}" and number
// words are not numbers, and units are not converted.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_READ_H
#define RLHF_PLUGINS_REWARDS_ANSWER_READ_H

#include "answer/decimal.h"

#include <rlhf/base.h>

struct rlhf__answer_reading {
    struct rlhf__ratio value;
    int32_t percent; // 1: a percent sign follows
    int32_t term;    // 1: rlhf__read_whole found a number with a variable: 5x
};

// Reads a text that is one number and nothing else. A sign and a currency sign may come before the
// number. With `units`, a unit may follow it. One or two letters are a unit only if they are the
// symbol of a unit: 5 m is 5, but 5x is not a number. Returns 1, or 0 if the text is not a number.
// [any]
int rlhf__read_whole(rlhf_str text, int units, struct rlhf__answer_reading *out);

// Returns 1 if a digit is directly followed by one or two letters that are not the symbol of a
// unit: 3x. [any]
int rlhf__has_term(rlhf_str text);

// Finds the first or the last number in the text. Digits inside words (x2), exponents (cm^2) and
// ambiguous forms (1/2/2024, 1.2.3, 5/0) are ignored. Returns 1, or 0 if the text has no number.
// [any]
int rlhf__read_first(rlhf_str text, struct rlhf__answer_reading *out);
int rlhf__read_last(rlhf_str text, struct rlhf__answer_reading *out);

#endif
