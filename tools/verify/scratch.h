// scratch.h: a directory for recomputed files.
#ifndef RLHF_TOOLS_VERIFY_SCRATCH_H
#define RLHF_TOOLS_VERIFY_SCRATCH_H

#include "base/folder.h"

// Make a directory in $TMPDIR, or in /tmp. *out is NULL after an error. [main]
rlhf_status rlhf__scratch_make(struct rlhf__folder **out, struct rlhf__error *err);

// Close the directory, and remove it with all files in it. NULL allowed. [main]
void rlhf__scratch_remove(struct rlhf__folder *);

#endif
