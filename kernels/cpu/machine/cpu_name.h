// cpu_name.h: the name of the CPU, as shown to users.
#ifndef RLHF_CPU_CPU_NAME_H
#define RLHF_CPU_CPU_NAME_H

#include <stddef.h>

// Sets `out` to the CPU's name, from `root`/proc/cpuinfo: its "model name". On aarch64 the kernel
// gives numbers instead; `out` then becomes the implementer and the part of the first CPU. If
// nothing is known, it is "CPU". `root` is "", or the root of a copy in tests. [any]
void rlhf__cpu_name(const char *root, char *out, size_t cap);

// Sets `out` to the value in the first line "key<blanks>: value" of a file in /proc. If no line has
// the key, `out` is "". [any]
void rlhf__proc_value(const char *path, const char *key, char *out, size_t cap);

#endif
