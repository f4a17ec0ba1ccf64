// name_range.h: the names of several runs as one short text.
#ifndef RLHF_TOOLS_RUNS_NAME_RANGE_H
#define RLHF_TOOLS_RUNS_NAME_RANGE_H

#include "base/buf.h"

// Append "seed-1 .. 3" for seed-1, seed-2 and seed-3 in any order, or "seed-1, 2, 5" if numbers are
// missing. For names without such numbers, append up to three names, and how many more there are.
// [any]
void rlhf__put_name_range(struct rlhf__buf *out, const char *const *name, size_t n);

#endif
