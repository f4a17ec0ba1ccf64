// leftover.h: files of a run that ended before its first checkpoint and so cannot be resumed.
#ifndef RLHF_HOST_LEFTOVER_H
#define RLHF_HOST_LEFTOVER_H

#include "base/folder.h"

// Whether a run directory contains only files that a run writes before its first checkpoint,
// including an unfinished checkpoint. Rows of metrics, samples and rollouts are worth keeping
// unless `rows` is 1. Does not check whether the run is alive. [main]
int rlhf__leftover_is_all(const struct rlhf__folder *run, int rows);

// Remove these files, except the lock, which the caller must hold. [main]
rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, struct rlhf__error *err);

#endif
