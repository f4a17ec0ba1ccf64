// cores.h: the default number of threads.
//
// Threads are not bound to cores; the kernel moves them freely.
#ifndef RLHF_CPU_CORES_H
#define RLHF_CPU_CORES_H

#include <sched.h>
#include <stddef.h>

// The number of threads for the processors in `allowed`, a mask of `bytes` bytes as returned by
// sched_getaffinity (which takes cpusets into account). At least 1.
//
// There is one thread per physical core. Hyper-threads share a core's multipliers, so a second
// thread does not speed up a GEMM that saturates them. There are at most as many threads as the CPU
// quota, rounded up, because all threads are paused once a period's quota is used up. The quota is
// the smallest quota of the process's control group and its ancestors (version 1 or 2). Limits that
// cannot be read are ignored. `root` is prepended to /sys and /proc: "", or the root of a copy in
// tests. [any]
int rlhf__cores_count(const char *root, const cpu_set_t *allowed, size_t bytes);

// The same for this process, now. [any]
int rlhf__cores_auto(void);

#endif
