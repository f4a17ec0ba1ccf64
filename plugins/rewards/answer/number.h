// number.h: a number without its sign at a cursor: decimals with separators and exponents,
// fractions, mixed numbers.
//
// What it is not: signs, currencies, units and numbers inside a text are read.h's.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_NUMBER_H
#define RLHF_PLUGINS_REWARDS_ANSWER_NUMBER_H

#include "answer/cursor.h"
#include "answer/decimal.h"

// 1: *out is the number, the cursor behind it. 0: there is none. -1: digits that make none (5/0);
// the cursor is behind them. [any]
int rlhf__take_magnitude(struct rlhf__cursor *c, struct rlhf__ratio *out);
// "^6", "^{-6}" behind a ten; 0 = there is none (the cursor may have moved). [any]
int rlhf__take_raised(struct rlhf__cursor *c, int64_t *out);

#endif
