// side_by_side.h: two texts in two columns.
#ifndef RLHF_TOOLS_PROMPT_SIDE_BY_SIDE_H
#define RLHF_TOOLS_PROMPT_SIDE_BY_SIDE_H

#include "base/buf.h"

struct rlhf__column {
    const char *title;
    struct rlhf__buf text, foot; // any text; the line under it
};

void rlhf__column_finish(struct rlhf__column *); // [any]

// Append both texts side by side. Lines have a width of at most `columns`, and each text gets half
// of a line. Control characters become spaces. [any]
void rlhf__side_by_side(const struct rlhf__column *left, const struct rlhf__column *right,
                        int columns, struct rlhf__buf *out);

#endif
