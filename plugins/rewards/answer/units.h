// units.h: what may follow a number without changing it.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_UNITS_H
#define RLHF_PLUGINS_REWARDS_ANSWER_UNITS_H

#include "answer/cursor.h"

// Returns 1 if the text begins with one or two letters that are not the symbol of a unit: x in 5x.
// [any]
int rlhf__has_variable(const char *at, const char *end);

// Returns 1 if the text after a number, up to the next pause, contains an unknown symbol of one or
// two letters, but no word of three or more letters. [any]
int rlhf__has_unknown_symbol(const struct rlhf__cursor *);

// Moves past the rest of the text. Returns 1 if it is a unit: words, or symbols such as "km/h" and
// "cm^2". Digits are allowed only in an exponent, and operators such as + are not allowed. [any]
int rlhf__rest_is_unit(struct rlhf__cursor *);

#endif
