// typed_completion.h: completes what is typed in a dialogue: a command at the beginning of the
// line, or a path after a command that takes a path.
#ifndef RLHF_TOOLS_PROMPT_TYPED_COMPLETION_H
#define RLHF_TOOLS_PROMPT_TYPED_COMPLETION_H

#include "base/buf.h"

#include <rlhf/base.h>

struct rlhf__completion_words {
    const char *const *commands;  // ends with NULL: "/help", ...
    const char *const *with_path; // ends with NULL: the commands that take a path
};

// Complete `typed`, the line up to the cursor. *add receives the text to insert: what all
// candidates have in common after the typed part and, for a single candidate, a space or a slash.
// If there are several candidates but nothing to insert, *list receives the candidates, separated
// by two spaces. Returns the number of candidates. [any]
size_t rlhf__complete(const struct rlhf__completion_words *, rlhf_str typed, struct rlhf__buf *add,
                      struct rlhf__buf *list);

#endif
