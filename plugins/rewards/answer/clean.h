// clean.h: what TeX, Markdown and Unicode put around and into an answer, taken away.
//
// Of TeX: \text{..}, \mathrm{..} and their like become what is inside; \left, \right, \! and
// \displaystyle go; \( \) \[ \], \; \: \quad and ~ are spaces, \, is one that joins; \$ and \% are
// $ and %; {,} is a comma; \dfrac and \tfrac are \frac; \times and \cdot are their signs; ^\circ is
// the degree sign. Of Unicode: minus and en dash are -, thin and narrow spaces join.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_CLEAN_H
#define RLHF_PLUGINS_REWARDS_ANSWER_CLEAN_H

#include <rlhf/base.h>

// out has space for text.len bytes; the result borrows it. [any]
rlhf_str rlhf__clean(rlhf_str text, char *out);

// Remove white space, quotes, * _ ` $ at both ends and sentence marks . , ; : ! at the end. [any]
rlhf_str rlhf__strip(rlhf_str text);

rlhf_str rlhf__trim(rlhf_str text); // without white space at both ends [any]

// Whether two cleaned texts are the same. White space matters only where TeX needs it: between two
// words or two numbers, in any width, and not after a command. Braces around a single character and
// $ are ignored, and with ignore_case the case of ASCII letters too. [any]
int rlhf__same_text(rlhf_str a, rlhf_str b, int ignore_case);

#endif
