// place.h: finds the answer in a response. Of several boxes or marks the last one counts.
#ifndef RLHF_PLUGINS_REWARDS_ANSWER_PLACE_H
#define RLHF_PLUGINS_REWARDS_ANSWER_PLACE_H

#include <rlhf/base.h>

// Each function returns 1 and *out, borrowed from text and not trimmed, or 0 = not found. [any]
//
// The contents of the last closed \boxed{...} (or \fbox{...}); braces inside it are matched, but \{
// and \} are not braces.
int rlhf__place_boxed(rlhf_str text, rlhf_str *out);

// The rest of the line after the last occurrence of mark, or the next line that is not blank.
int rlhf__place_behind(rlhf_str text, rlhf_str mark, rlhf_str *out);

// Everything after the last occurrence of mark.
int rlhf__place_after(rlhf_str text, rlhf_str mark, rlhf_str *out);

#endif
