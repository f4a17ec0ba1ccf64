// mapped.h: a file that is mapped for reading. Pages that have been used can be dropped from
// memory. Another process may truncate the file at any time.
//
// A mapped file is read-only, and only one thread at a time may read it.
#ifndef RLHF_FORMATS_TENSORS_MAPPED_H
#define RLHF_FORMATS_TENSORS_MAPPED_H

#include "base/error.h"

struct rlhf__mapped {
    const uint8_t *bytes; // [len]; read them inside rlhf__mapped_read
    uint64_t len;
    char *path; // for messages
    int fd;
};

// Map a regular file without reading it. *m needs rlhf__mapped_close, even after a failure. Errors:
// RLHF_E_INVALID (the file is missing or not a regular file), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__mapped_open(const char *path, struct rlhf__mapped *m, struct rlhf__error *err);
void rlhf__mapped_close(struct rlhf__mapped *m); // a zeroed struct is allowed [main]

// Call work(arg), which reads m->bytes. If another process has truncated the file, some of its
// pages are missing or read as zeros. Reading a missing page raises SIGBUS, which aborts `work`. In
// both cases this function returns RLHF_E_IO, and the output of `work` is invalid. `work` may only
// copy or convert data. It must not allocate memory, take locks, call functions that do so, or call
// rlhf__mapped_read. [main]
rlhf_status rlhf__mapped_read(const struct rlhf__mapped *m, void (*work)(void *arg), void *arg,
                              struct rlhf__error *err);

// Drop the pages of bytes [from, to) from the process. The system may keep them in its cache. If
// the bytes are accessed later, the system reads the pages again. [main]
void rlhf__mapped_used(const struct rlhf__mapped *m, uint64_t from, uint64_t to);

#endif
