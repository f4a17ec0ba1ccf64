// completion.h: completes what is typed in a dialogue: commands at the beginning of a line, and
// paths after commands that take one.
#ifndef RLHF_TOOLS_PROMPT_COMPLETION_H
#define RLHF_TOOLS_PROMPT_COMPLETION_H

#include "base/buf.h"

#include <rlhf/base.h>

struct rlhf__completion_words {
    const char *const *commands;  // ends with NULL: "/help", ...
    const char *const *with_path; // ends with NULL: those that a path follows
};

// Complete `typed`, the line up to the cursor. *add receives the text to insert: what all
// candidates have in common, and a space or a slash if there is only one. *list receives the
// candidates separated by two spaces if there are several and nothing can be inserted. Returns the
// number of candidates. [any]
size_t rlhf__complete(const struct rlhf__completion_words *, rlhf_str typed, struct rlhf__buf *add,
                      struct rlhf__buf *list);

#endif
