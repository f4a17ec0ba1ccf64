// host_memory.h: how much memory the machine has for this process, and how much of it the process
// has.
#ifndef RLHF_HOST_HOST_MEMORY_H
#define RLHF_HOST_HOST_MEMORY_H

#include <stdint.h>

// Bytes; total 0: nobody knows.
struct rlhf__host_memory {
    uint64_t total; // of the machine, or what the process's control group may have
    uint64_t left;  // that can still be taken without anything being swapped out or killed
    uint64_t own;   // resident in this process
};

// What the kernel says: MemAvailable, and the limits of the process's control group and those above
// it (version 2 or 1). root: "" (for tests: a directory with proc/ and sys/ of its own). [any]
struct rlhf__host_memory rlhf__host_memory(const char *root);

#endif
