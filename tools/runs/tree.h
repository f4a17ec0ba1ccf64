// tree.h: how much a directory holds.
#ifndef RLHF_TOOLS_RUNS_TREE_H
#define RLHF_TOOLS_RUNS_TREE_H

#include "base/folder.h"

// The bytes of all regular files below `name` in a folder; "." is the folder itself. Links are not
// followed, and what cannot be read counts nothing. A file with several names counts each time.
// [any]
int64_t rlhf__tree_bytes(const struct rlhf__folder *in, const char *name);

#endif
