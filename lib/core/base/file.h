// file.h: reading whole files, and their paths.
#ifndef RLHF_HOST_FILE_H
#define RLHF_HOST_FILE_H

#include "base/buf.h"

// Append the whole of path to *out. A file of more than max_bytes is refused by name and size.
// RLHF_E_IO when it cannot be opened or read (RLHF_E_INVALID when it does not exist). [any]
rlhf_status rlhf__file_read(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err);

// The same of an open descriptor; path is for messages. [any]
rlhf_status rlhf__file_read_fd(int fd, const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                               struct rlhf__error *err);

// 1 when path is a regular file / a directory. [any]
int rlhf__is_file(const char *path);
int rlhf__is_dir(const char *path);

// The absolute path without links and "..", where nothing is allocated; NULL, with errno set, when
// there is no such file. Returns out. [any]
#define RLHF__PATH_CAP 4096
char *rlhf__path_real(const char *path, char out[RLHF__PATH_CAP]);

// A path by printf's rules into out; where it is longer than any may be, the empty one, which names
// nothing. Returns out. [any]
__attribute__((format(printf, 2, 3))) const char *rlhf__path_put(char out[RLHF__PATH_CAP],
                                                                 const char *fmt, ...);

// "a/b" from a and b, heap, freed by the caller; NULL when out of memory. [any]
char *rlhf__path_join(const char *a, const char *b);

// "dir/name", cut to cap bytes. Returns out. [any]
const char *rlhf__path_in(char *out, size_t cap, const char *dir, const char *name);

// The part of path after its last '/'. Borrowed from path. [any]
const char *rlhf__path_base(const char *path);

#endif
