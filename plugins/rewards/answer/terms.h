// terms.h: parts of a running text whose digits are not numbers of their own: the arguments of
// functions (\sqrt{25}, log 8), exponents and indices, factorials, dates, digits in words.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_TERMS_H
#define RLHF_PLUGINS_REWARDS_ANSWER_TERMS_H

#include "answer/cursor.h"

// Moves past a command with the arguments that it takes, or past an exponent or index. Returns 0 if
// there is none at the cursor. [any]
int rlhf__take_term(struct rlhf__cursor *);

// Returns 1 if the text before the cursor shows that the digits at the cursor are a part of
// something longer. [any]
int rlhf__is_part(const struct rlhf__cursor *);

// Moves past the rest of a form that only begins like a number: ".3" in 1.2.3, "/3" in 1/2/3, "^5"
// in 2^5, "!" in 5!. Returns 1 if there was such a rest. [any]
int rlhf__take_torn(struct rlhf__cursor *);

// Returns 1 if a number is directly followed by one or two letters that are not the symbol of a
// unit, or by a factor: 5x, 5\pi. [any]
int rlhf__has_factor(const struct rlhf__cursor *);

#endif
