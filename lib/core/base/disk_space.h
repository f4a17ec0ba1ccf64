// disk_space.h: the free space of a file system.
#ifndef RLHF_CORE_BASE_DISK_SPACE_H
#define RLHF_CORE_BASE_DISK_SPACE_H

#include <stdint.h>

// Set *bytes to the space that this user may still write: _at in the directory `path` or, if it
// does not exist, in its closest parent; _of in the open directory `fd`. Returns 0 if the space is
// unknown. [any]
int rlhf__disk_space_at(const char *path, uint64_t *bytes);
int rlhf__disk_space_of(int fd, uint64_t *bytes);

#endif
