// run_lock.h: RUN/lock makes sure that only one process writes a run. The kernel holds the lock and
// releases it when the process ends; the file's text (process and host) is for messages.
#ifndef RLHF_HOST_RUN_LOCK_H
#define RLHF_HOST_RUN_LOCK_H

#include "base/folder.h"
#include "base/log.h"

// Take the lock of a run; *fd holds it until it is closed. If another process has it:
// RLHF_E_INVALID, with its pid and host. If the file system does not support locks, a warning is
// logged and *fd is -1. [main]
rlhf_status rlhf__run_lock(const struct rlhf__folder *run, struct rlhf__log *log, int *fd,
                           struct rlhf__error *err);

// The same result, but nothing is written or held. [main]
rlhf_status rlhf__run_lock_probe(const struct rlhf__folder *run, struct rlhf__error *err);

#endif
