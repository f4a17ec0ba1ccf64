// mapped.h: a file mapped to be read, whose pages go as they have been used and which somebody else
// may cut short meanwhile.
//
// What it is not: for writing, or for reading from several threads at once.
#ifndef RLHF_HOST_MAPPED_H
#define RLHF_HOST_MAPPED_H

#include "base/error.h"

struct rlhf__mapped {
    const uint8_t *bytes; // [len]; read them inside rlhf__mapped_read
    uint64_t len;
    char *path; // for messages
    int fd;
    int32_t reserved;
};

// Map a regular file, which is not read yet; *m is good until rlhf__mapped_close, also after a
// failure. Errors: RLHF_E_INVALID (no file, or none that is regular), RLHF_E_IO, RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__mapped_open(const char *path, struct rlhf__mapped *m, struct rlhf__error *err);
void rlhf__mapped_close(struct rlhf__mapped *m); // accepts a zeroed one [main]

// Call work(arg), which reads bytes. When the file has become shorter than it was, pages are gone
// (SIGBUS, from which work is left where it stands) or read as zeros: RLHF_E_IO, and what work made
// is worth nothing. work copies or converts; it allocates nothing, takes no lock and calls nothing
// that does. Not from within work. [main]
rlhf_status rlhf__mapped_read(const struct rlhf__mapped *m, void (*work)(void *arg), void *arg,
                              struct rlhf__error *err);

// The bytes [from, to) were used: their pages leave the process (the system may keep them, and
// reads them again where they are wanted after all). [main]
void rlhf__mapped_used(const struct rlhf__mapped *m, uint64_t from, uint64_t to);

#endif
