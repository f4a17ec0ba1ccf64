// cpu_name.h: the name of the CPU, for people.
#ifndef RLHF_CPU_CPU_NAME_H
#define RLHF_CPU_CPU_NAME_H

#include <stddef.h>

// Sets `out` to the CPU's name according to `root`/proc/cpuinfo: its "model name", or on aarch64,
// where the kernel states numbers instead, the name of the first CPU's implementer and part; "CPU"
// if nothing is known. `root` is "", or the root of a copy in tests. [any]
void rlhf__cpu_name(const char *root, char *out, size_t cap);

// Sets `out` to the value in the first line "key<blanks>: value" of a file in /proc; "" if the key
// is missing. [any]
void rlhf__proc_value(const char *path, const char *key, char *out, size_t cap);

#endif
