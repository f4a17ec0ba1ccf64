// append.h: appends to a file.
#ifndef RLHF_HOST_APPEND_H
#define RLHF_HOST_APPEND_H

#include "base/buf.h"

// Append all bytes to fd; on failure the file is cut back to its earlier length. `path` is for the
// message. Errors: RLHF_E_IO, RLHF_E_NOMEM (of the buffer). [any]
rlhf_status rlhf__append_buf(int fd, const char *path, const struct rlhf__buf *bytes,
                             struct rlhf__error *err);

// fsync, if the file supports it. [any]
rlhf_status rlhf__append_sync(int fd, const char *path, struct rlhf__error *err);

#endif
