// run_lock.h: RUN/lock: one process writes a run. The lock is the kernel's and ends with its
// process; what the file says (process and host) is for those who find it taken.
#ifndef RLHF_HOST_RUN_LOCK_H
#define RLHF_HOST_RUN_LOCK_H

#include "base/folder.h"
#include "base/log.h"

// Take the lock of a run; *fd holds it until it is closed. When another process has it:
// RLHF_E_INVALID, with its number and host. Where the file system has no locks the log says so and
// *fd is -1. [main]
rlhf_status rlhf__run_lock(const struct rlhf__folder *run, struct rlhf__log *log, int *fd,
                           struct rlhf__error *err);

// The same answer, but nothing is written or held. [main]
rlhf_status rlhf__run_lock_probe(const struct rlhf__folder *run, struct rlhf__error *err);

#endif
