// list_table.h: the table of `runs list` and the line below it.
#ifndef RLHF_TOOLS_RUNS_LIST_TABLE_H
#define RLHF_TOOLS_RUNS_LIST_TABLE_H

#include "runs/runs_found.h"

struct rlhf__list_view {
    const char *dir; // as the user gave it
    double now;      // seconds since 1970
    int32_t width;   // columns of the terminal, 0: no limit
    int32_t most;    // runs to show, 0: all
    int64_t freed;   // bytes that `runs prune --keep-last` would free
};

// Append the lines. [any]
void rlhf__list_table_put(const struct rlhf__runs_found *, const struct rlhf__list_view *,
                          struct rlhf__buf *out);

#endif
