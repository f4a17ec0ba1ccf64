// run_lock.h: RUN/lock ensures that only one process writes to a run. The kernel holds the lock and
// releases it when the process ends. The file's text (process and host) is only for messages.
#ifndef RLHF_HOST_KEEP_RUN_LOCK_H
#define RLHF_HOST_KEEP_RUN_LOCK_H

#include "base/folder.h"
#include "base/log.h"

// Take the lock of a run. The lock is held until *fd is closed. If another process has the lock,
// waits up to wait_ms milliseconds for its release. (A killed process keeps its lock until the
// kernel has freed its memory.) Errors: RLHF_E_INVALID if another process still has the lock; the
// message names that process's pid and host. If the file system does not support locks, logs a
// warning and sets *fd to -1. [main]
rlhf_status rlhf__run_lock(const struct rlhf__folder *run, int wait_ms, struct rlhf__log *log,
                           int *fd, struct rlhf__error *err);

// If another process holds the lock, returns 1 and sets `out` to "process 123 on HOST". Writes
// nothing and takes no lock. [main]
#define RLHF__LOCK_HOLDER 320
int rlhf__run_lock_holder(const struct rlhf__folder *run, char out[RLHF__LOCK_HOLDER]);

// Returns what rlhf__run_lock would return with wait_ms = 0, but writes nothing and takes no lock.
// [main]
rlhf_status rlhf__run_lock_probe(const struct rlhf__folder *run, struct rlhf__error *err);

#endif
