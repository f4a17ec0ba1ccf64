// descendants.h: finds the processes that a process has started, directly or indirectly, in /proc.
#ifndef RLHF_SUPERVISE_DESCENDANTS_H
#define RLHF_SUPERVISE_DESCENDANTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Kill all descendants of the calling process. Processes that a descendant starts during the call
// survive; if /proc cannot be read, all survive. Returns how many were killed. [main]
size_t rlhf__descendants_kill(void);

// The processor time of all descendants of the calling process except `except`. As long as the tree
// is stopped, every call gives the same value.
struct rlhf__tree {
    uint64_t ticks;  // of processor time
    uint64_t newest; // start time of the newest
    int traced;      // 1: a debugger is attached to one
};

// Zeros when /proc cannot be read. [main]
struct rlhf__tree rlhf__descendants_look(pid_t except);

// Kill all process groups of a session except the group of its leader. Returns how many of their
// processes had not ended before. [main]
size_t rlhf__session_kill(pid_t session);

#endif
