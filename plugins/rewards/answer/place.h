// place.h: finds the answer in a response. If there are several boxes or marks, the last one is
// used.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_PLACE_H
#define RLHF_PLUGINS_REWARDS_ANSWER_PLACE_H

#include <rlhf/base.h>

// Each of these functions returns 0 if it finds nothing. Otherwise it returns 1 and sets *out to a
// part of the text (borrowed, not trimmed). [any]
//
// Finds the contents of the last \boxed{...} (or \fbox{...}) that has a closing brace. Braces
// inside the box must match; \{ and \} do not count as braces.
int rlhf__place_boxed(rlhf_str text, rlhf_str *out);

// Finds the rest of the line after the last occurrence of `mark`. If the rest is blank, finds the
// next line that is not blank.
int rlhf__place_behind(rlhf_str text, rlhf_str mark, rlhf_str *out);

// Finds the whole text after the last occurrence of `mark`.
int rlhf__place_after(rlhf_str text, rlhf_str mark, rlhf_str *out);

#endif
