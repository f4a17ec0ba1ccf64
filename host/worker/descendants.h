// descendants.h: all that a process has started, and what those have started, as /proc tells.
#ifndef RLHF_HOST_WORKER_DESCENDANTS_H
#define RLHF_HOST_WORKER_DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

// Kill all descendants of the calling process. One of them may have started others meanwhile: those
// are left, and so is everything when /proc cannot be read. Returns how many. [main]
size_t rlhf__descendants_kill(void);

#endif
