// number.h: reads a number without a sign at a cursor: decimals with separators and exponents,
// fractions, mixed numbers. read.h handles signs, currencies, units and numbers inside a text.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_NUMBER_H
#define RLHF_PLUGINS_REWARDS_ANSWER_NUMBER_H

#include "answer/cursor.h"
#include "answer/decimal.h"

// Returns 1 and sets *out if a number is at the cursor. Returns 0 if not, and -1 if there are
// digits that do not form a number (5/0). If the result is 1 or -1, the cursor moves past the
// digits. [any]
int rlhf__take_magnitude(struct rlhf__cursor *c, struct rlhf__ratio *out);
// Reads the exponent after a ten: "^6" or "^{-6}". Returns 0 if it is missing; the cursor may then
// have moved. [any]
int rlhf__take_raised(struct rlhf__cursor *c, int64_t *out);

#endif
