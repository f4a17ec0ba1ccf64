// host_memory.h: how much memory this process may use, and how much it uses now.
#ifndef RLHF_CORE_BASE_HOST_MEMORY_H
#define RLHF_CORE_BASE_HOST_MEMORY_H

#include <stdint.h>

// Amounts of memory in bytes. If `total` is 0, none of them is known.
struct rlhf__host_memory {
    uint64_t total; // of the machine, or the limit of this process's control group
    uint64_t left;  // bytes that can be allocated before something is swapped or killed
    uint64_t own;   // resident in this process
};

// Reads the amounts from the kernel: MemAvailable, and the limits of the process's control group
// and of its parent groups (version 2 or 1). `root` is "" or, in tests, a directory that contains
// proc/ and sys/. [any]
struct rlhf__host_memory rlhf__host_memory(const char *root);

#endif
