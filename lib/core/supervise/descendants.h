// descendants.h: finds, in /proc, the processes that a process has started, directly or indirectly.
#ifndef RLHF_CORE_SUPERVISE_DESCENDANTS_H
#define RLHF_CORE_SUPERVISE_DESCENDANTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Kill all descendants of the calling process. Processes that a descendant starts during the call
// survive. If /proc cannot be read, kills nothing. Returns the number of processes killed. [main]
size_t rlhf__descendants_kill(void);

// Facts about all descendants of the calling process except the process `except`. As long as the
// descendants are suspended, every call gives the same values.
struct rlhf__process_tree {
    uint64_t ticks;  // of processor time
    uint64_t newest; // start time of the newest process
    int traced;      // 1: a debugger is attached to one of them
};

// Returns zeros if /proc cannot be read. [main]
struct rlhf__process_tree rlhf__descendants_look(pid_t except);

// Kill all process groups of a session except the group of its leader. Returns how many processes
// of these groups were still running when the function was called. [main]
size_t rlhf__session_kill(pid_t session);

#endif
