// leftover.h: what a run leaves that ended before its first phase did: files in which nothing is
// that could be gone on from, or looked at.
#ifndef RLHF_HOST_LEFTOVER_H
#define RLHF_HOST_LEFTOVER_H

#include "base/folder.h"

// Whether a run directory holds no more than that: no checkpoint, no row of metrics, samples or
// rollouts, and nothing that a run does not write. Whether the run is alive is not asked. [main]
int rlhf__leftover_is_all(const struct rlhf__folder *run);

// Remove it, the lock excepted; for who has the lock. [main]
rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, struct rlhf__error *err);

#endif
