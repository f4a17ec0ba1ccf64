// cores.h: how many threads are worth starting where nobody says.
//
// What it is not: a binding of threads to cores; the kernel moves them as it likes.
#ifndef RLHF_CPU_CORES_H
#define RLHF_CPU_CORES_H

#include <sched.h>
#include <stddef.h>

// Threads for the processors in `allowed` (a mask of `bytes`, as of sched_getaffinity, which has
// cpusets applied): one a physical core, since the hyper-threads of a core share the units that
// multiply, and products that fill them are not faster on both; and no more than the process'
// control groups (version 1 or 2, its own and those above it) let run, rounded up, since threads
// pause together when the time of a period is spent. At least 1. What cannot be read limits
// nothing. `root` stands before /sys and /proc: "", or a copy for a test. [any]
int rlhf__cores_count(const char *root, const cpu_set_t *allowed, size_t bytes);

// The same of this process, here and now. [any]
int rlhf__cores_auto(void);

#endif
