// cpu_name.h: the name of the CPU, as shown to users.
#ifndef RLHF_CPU_CPU_NAME_H
#define RLHF_CPU_CPU_NAME_H

#include <stddef.h>

// Sets `out` to the CPU's "model name" in `root`/proc/cpuinfo. On aarch64, this file has only the
// numbers of the implementer and of the part. `out` then becomes the name of this part or, if the
// part is unknown, its numbers. If the file has none of these, `out` is "CPU". `root` is put in
// front of /proc; it is "" except in tests. [any]
void rlhf__cpu_name(const char *root, char *out, size_t cap);

// Sets `out` to the value in the first line "key<blanks>: value" of a file in /proc. If no line has
// the key, `out` is "". [any]
void rlhf__proc_value(const char *path, const char *key, char *out, size_t cap);

#endif
