// clean.h: removes the markup of TeX, Markdown and Unicode from an answer.
//
// from                                     to
// \text{..}, \mathrm{..} and the like      their contents
// \left \right \displaystyle               nothing
// \! and the spaces around it              nothing
// \( \) \[ \]                              $ and a space
// \quad                                   a space
// \, \; \: ~ thin and narrow spaces        a joining space
// superscripts of Unicode                  ^{..}
// fraction slash                           /
// \$ \%                                    $ %
// {,}                                      a comma
// \dfrac \tfrac                            \frac
// \leq \geq \neq                           \le \ge \ne
// \times \cdot ^\circ                      their signs
// minus and en dash of Unicode             -
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_CLEAN_H
#define RLHF_PLUGINS_REWARDS_ANSWER_CLEAN_H

#include <rlhf/base.h>

// Returns the cleaned text, which is stored in `out`. `out` must have room for 2 * text.len bytes.
// [any]
rlhf_str rlhf__clean(rlhf_str text, char *out);

// Remove white space, quotes, and * _ ` $ at both ends, and the punctuation marks . , ; : ! at the
// end. A "'" is removed only together with the one at the other end, because f' is not f. A "!" is
// removed only after a word of three or more letters, because n! is not n. [any]
rlhf_str rlhf__strip(rlhf_str text);

rlhf_str rlhf__trim(rlhf_str text); // removes white space at both ends [any]

// Returns 1 if two cleaned texts are the same. White space matters only where TeX needs it: between
// two words or two numbers, but not after a command. The amount of white space never matters. $ and
// braces around a single character are ignored. With ignore_case, the case of ASCII letters is
// ignored too. [any]
int rlhf__same_text(rlhf_str a, rlhf_str b, int ignore_case);

#endif
