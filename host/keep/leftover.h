// leftover.h: files of a run that ended before its first checkpoint, from which nothing can resume.
#ifndef RLHF_HOST_LEFTOVER_H
#define RLHF_HOST_LEFTOVER_H

#include "base/folder.h"

// Whether a run directory holds nothing but what a run writes before its first checkpoint, at most
// a checkpoint that was not finished. Rows of metrics, samples and rollouts count as worth keeping
// unless `rows` is 1. Does not ask whether the run is alive. [main]
int rlhf__leftover_is_all(const struct rlhf__folder *run, int rows);

// Remove it, the lock excepted; for who has the lock. [main]
rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, struct rlhf__error *err);

#endif
