// file.h: reading whole files and writing them so that a crash leaves the old file or the new one,
// never half of one.
#ifndef RLHF_HOST_FILE_H
#define RLHF_HOST_FILE_H

#include "base/folder.h"

// Append the whole of path to *out. A file of more than max_bytes is refused by name and size.
// RLHF_E_IO when it cannot be opened or read (RLHF_E_INVALID when it does not exist). [any]
rlhf_status rlhf__file_read(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err);

// The same of an open descriptor; path is for messages. [any]
rlhf_status rlhf__file_read_fd(int fd, const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                               struct rlhf__error *err);

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

// Bytes put so far.
uint64_t rlhf__file_writer_size(const struct rlhf__file_writer *w);

// Flush, fsync, rename over the target, fsync the directory; frees w. On failure the temporary is
// removed, the target is what it was, and w is freed all the same.
rlhf_status rlhf__file_writer_commit(struct rlhf__file_writer *w, struct rlhf__error *err);

// Drop what was written; frees w. NULL allowed.
void rlhf__file_writer_abort(struct rlhf__file_writer *w);

// open + put + commit in one.
rlhf_status rlhf__file_write(const struct rlhf__folder *in, const char *name, const void *bytes,
                             size_t n, struct rlhf__error *err);

// 1 when path is a regular file / a directory. [any]
int rlhf__is_file(const char *path);
int rlhf__is_dir(const char *path);

// The absolute path without links and "..", where nothing is allocated; NULL, with errno set, when
// there is no such file. Returns out. [any]
#define RLHF__PATH_CAP 4096
char *rlhf__path_real(const char *path, char out[RLHF__PATH_CAP]);

// "a/b" from a and b, heap, freed by the caller; NULL when out of memory. [any]
char *rlhf__path_join(const char *a, const char *b);

// The part of path after its last '/'. Borrowed from path. [any]
const char *rlhf__path_base(const char *path);

#endif
