// regular.h: opens regular files for reading. All other files are refused, because reading a pipe
// can wait for ever, and reading a device need not end.
#ifndef RLHF_CORE_BASE_REGULAR_H
#define RLHF_CORE_BASE_REGULAR_H

#include "base/error.h"

// Open the file `name`, which is relative to the directory `at` (AT_FDCWD: a path). Does not wait.
// If `follow` is 0, the file must not be a link. Returns a descriptor, or -1 with errno set: EISDIR
// for a directory, ENOTSUP for a pipe, device or socket, ELOOP for a link. [any]
int rlhf__regular_open(int at, const char *name, int follow);

// Set `err` after rlhf__regular_open has failed. Errors: RLHF_E_INVALID if the file does not exist,
// is not a regular file or may not be opened; otherwise RLHF_E_IO. [any]
rlhf_status rlhf__regular_failed(const char *path, struct rlhf__error *err);

#endif
