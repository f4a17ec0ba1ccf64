// file_writer.h: writing a file so that a crash leaves the old one or the new one, never half of
// one.
#ifndef RLHF_HOST_FILE_WRITER_H
#define RLHF_HOST_FILE_WRITER_H

#include "base/folder.h"

// A file being written under a temporary name beside its target. [step]
struct rlhf__file_writer;

// Start writing `name` in a folder (borrowed until the end; NULL: name is a path): makes
// "<name>.tmp-<pid>" anew, never through a link of that name. The target is untouched until commit.
rlhf_status rlhf__file_writer_open(const struct rlhf__folder *in, const char *name,
                                   struct rlhf__file_writer **out, struct rlhf__error *err);

// Write n bytes (buffered). After a failure every later call returns the same failure. Disk full
// gives RLHF_E_IO with the target's name and the system's reason.
rlhf_status rlhf__file_writer_put(struct rlhf__file_writer *w, const void *bytes, size_t n,
                                  struct rlhf__error *err);

// Flush, fsync, rename over the target, fsync the directory; frees w. On failure the temporary is
// removed, the target is what it was, and w is freed all the same.
rlhf_status rlhf__file_writer_commit(struct rlhf__file_writer *w, struct rlhf__error *err);

// Drop what was written; frees w. NULL allowed.
void rlhf__file_writer_abort(struct rlhf__file_writer *w);

// open + put + commit in one.
rlhf_status rlhf__file_write(const struct rlhf__folder *in, const char *name, const void *bytes,
                             size_t n, struct rlhf__error *err);

#endif
