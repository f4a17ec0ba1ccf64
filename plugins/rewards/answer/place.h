// place.h: where in a response its answer stands. Where something is there several times, the last
// one counts.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_PLACE_H
#define RLHF_PLUGINS_REWARDS_ANSWER_PLACE_H

#include <rlhf/base.h>

// 1 and *out, borrowed from text and not trimmed, or 0 = there is none. [any]
//
// What is inside the last \boxed{...} (or \fbox{...}) that is closed; braces inside it are matched,
// \{ and \} are no braces.
int rlhf__place_boxed(rlhf_str text, rlhf_str *out);

// The rest of the line behind the last occurrence of mark, or the next line that is not blank.
int rlhf__place_behind(rlhf_str text, rlhf_str mark, rlhf_str *out);

// All that is behind the last occurrence of mark.
int rlhf__place_after(rlhf_str text, rlhf_str mark, rlhf_str *out);

#endif
