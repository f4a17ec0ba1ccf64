// cores.h: the default number of threads.
//
// Threads are not bound to cores; the kernel moves them freely.
#ifndef RLHF_CPU_CORES_H
#define RLHF_CPU_CORES_H

#include <sched.h>
#include <stddef.h>

// Threads for the processors in `allowed` (a mask of `bytes`, as from sched_getaffinity, which
// takes cpusets into account). It is one per physical core, because hyper-threads share a core's
// multipliers and GEMMs that saturate them do not run faster on both; and at most the CPU quota of
// the process' control groups (version 1 or 2, its own and all ancestors), rounded up, because all
// threads are paused once the quota of a period is used up. At least 1. Limits that cannot be read
// are ignored. `root` is prepended to /sys and /proc: "", or a copy for a test. [any]
int rlhf__cores_count(const char *root, const cpu_set_t *allowed, size_t bytes);

// The same for this process, now. [any]
int rlhf__cores_auto(void);

#endif
