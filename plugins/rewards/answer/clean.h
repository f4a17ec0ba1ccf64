// clean.h: removes the markup that TeX, Markdown and Unicode add to an answer.
//
// from                                     to
// \text{..}, \mathrm{..} and the like      their contents
// \left \right \! \displaystyle            nothing
// \( \) \[ \] \; \: \quad ~                a space
// \, thin and narrow spaces                a joining space
// \$ \%                                    $ %
// {,}                                      a comma
// \dfrac \tfrac                            \frac
// \leq \geq \neq                           \le \ge \ne
// \times \cdot ^\circ                      their signs
// minus and en dash of Unicode             -
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_CLEAN_H
#define RLHF_PLUGINS_REWARDS_ANSWER_CLEAN_H

#include <rlhf/base.h>

// out has space for text.len bytes; the result borrows it. [any]
rlhf_str rlhf__clean(rlhf_str text, char *out);

// Remove white space, quotes, and * _ ` $ at both ends, and sentence marks . , ; : ! at the end.
// [any]
rlhf_str rlhf__strip(rlhf_str text);

rlhf_str rlhf__trim(rlhf_str text); // without white space at both ends [any]

// Returns 1 if two cleaned texts are the same. White space matters only where TeX needs it: between
// two words or two numbers, but not after a command. Its width does not matter. Ignores $ and
// braces around a single character, and with ignore_case also the case of ASCII letters. [any]
int rlhf__same_text(rlhf_str a, rlhf_str b, int ignore_case);

#endif
