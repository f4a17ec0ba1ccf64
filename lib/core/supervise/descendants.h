// descendants.h: the processes that a process has started, directly or indirectly, read from /proc.
#ifndef RLHF_SUPERVISE_DESCENDANTS_H
#define RLHF_SUPERVISE_DESCENDANTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Kill all descendants of the calling process. Processes that one of them starts during the call
// survive, and everything survives when /proc cannot be read. Returns how many were killed. [main]
size_t rlhf__descendants_kill(void);

// The processor time of all descendants of the calling process but `except`. For a stopped tree all
// calls give the same values.
struct rlhf__tree {
    uint64_t ticks;  // of processor time
    uint64_t newest; // start time of the newest
    int traced;      // 1: a debugger is attached to one
};

// Zeros when /proc cannot be read. [main]
struct rlhf__tree rlhf__descendants_look(pid_t except);

// Kill all process groups of a session but the group of its leader. Returns how many processes in
// them had not ended before. [main]
size_t rlhf__session_kill(pid_t session);

#endif
