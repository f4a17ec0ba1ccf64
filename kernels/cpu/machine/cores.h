// cores.h: the default number of threads.
//
// Threads are not bound to cores; the kernel moves them freely.
#ifndef RLHF_CPU_CORES_H
#define RLHF_CPU_CORES_H

#include <sched.h>
#include <stddef.h>

// Returns the number of threads for the processors in `allowed`, at least 1. `allowed` is a mask
// that sched_getaffinity returned, so cpusets are respected. `bytes` is the size of the mask.
//
// There is one thread per physical core. Hyper-threads share the multipliers of a core, so a second
// thread does not speed up a GEMM that saturates them. The number of threads is at most the CPU
// quota, rounded up, because the kernel pauses all threads when the quota of a period is used up.
// The quota is the smallest of the quotas of the process's control group and its ancestors (version
// 1 or 2). A limit that cannot be read is ignored. `root` is put in front of /sys and /proc. It is
// "", except in tests, where it is a directory with copies of both trees. [any]
int rlhf__cores_count(const char *root, const cpu_set_t *allowed, size_t bytes);

// Like rlhf__cores_count, for this process as it is now. [any]
int rlhf__cores_auto(void);

#endif
