// tree_size.h: the size of a directory's files.
#ifndef RLHF_TOOLS_RUNS_TREE_SIZE_H
#define RLHF_TOOLS_RUNS_TREE_SIZE_H

#include "base/folder.h"

// Returns the total size in bytes of all regular files below `name` in a folder; "." is the folder
// itself. Links are not followed, and files that cannot be read count as 0 bytes. A file with
// several hard links counts once for each link. [any]
int64_t rlhf__tree_bytes(const struct rlhf__folder *in, const char *name);

#endif
