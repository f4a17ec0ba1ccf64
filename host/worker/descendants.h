// descendants.h: all that a process has started, and what those have started, as /proc tells.
#ifndef RLHF_HOST_WORKER_DESCENDANTS_H
#define RLHF_HOST_WORKER_DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

// Kill all descendants of the calling process. Processes that one of them starts during the call
// survive, and everything survives when /proc cannot be read. Returns how many were killed. [main]
size_t rlhf__descendants_kill(void);

// Kill all process groups of a session but the group of its leader. Returns how many processes in
// them had not ended before. [main]
size_t rlhf__session_kill(pid_t session);

#endif
