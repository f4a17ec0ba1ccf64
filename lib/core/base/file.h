// file.h: reads whole files, joins paths, and writes files so that a crash leaves the old file or
// the new one, but never half of one.
#ifndef RLHF_CORE_BASE_FILE_H
#define RLHF_CORE_BASE_FILE_H

#include "base/buf.h"

// ---- reading, and paths ----

// Append the whole file, which must be a regular file, to *out. If the file has more than
// `max_bytes` bytes, fails with a message that has the file's name and this limit. Errors: those of
// rlhf__regular_failed; RLHF_E_INVALID if the file is too large; RLHF_E_IO. [any]
rlhf_status rlhf__file_read(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err);

// Like rlhf__file_read, but the file may also be a pipe or a device, as in `--config <(...)`. For
// paths that the user typed. [any]
rlhf_status rlhf__file_read_stream(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                                   struct rlhf__error *err);

// Like rlhf__file_read, but for an open descriptor. `path` is used only in messages. [any]
rlhf_status rlhf__file_read_fd(int fd, const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                               struct rlhf__error *err);

// Return 1 if `path` is a regular file (rlhf__is_file) or a directory (rlhf__is_dir). [any]
int rlhf__is_file(const char *path);
int rlhf__is_dir(const char *path);

// Check that a new file may be created at `path`: its directory must exist and be writable. Writes
// nothing. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__file_may_make(const char *path, struct rlhf__error *err);

// Set `out` to the absolute form of `path`, without links and "..". Allocates nothing. Returns
// `out`, or NULL with errno set if the file does not exist. [any]
#define RLHF__PATH_CAP 4096
char *rlhf__path_real(const char *path, char out[RLHF__PATH_CAP]);

// Print a path into `out` and return `out`. If the path does not fit, `out` becomes "", which is
// not the name of any file. [any]
__attribute__((format(printf, 2, 3))) const char *rlhf__path_put(char out[RLHF__PATH_CAP],
                                                                 const char *fmt, ...);

// Join `a` and `b` to "a/b". The result is on the heap, and the caller frees it. Returns NULL if
// memory runs out. [any]
char *rlhf__path_join(const char *a, const char *b);

// Write "dir/name" to `out`, cut to `cap` bytes. Returns `out`. [any]
const char *rlhf__path_in(char *out, size_t cap, const char *dir, const char *name);

// Returns the part of `path` after its last '/'. The result is borrowed from `path`. [any]
const char *rlhf__path_base(const char *path);

// Returns the last part of a path. For a checkpoint, whose last part is only a number, includes the
// name of the run: for "a/RUN/checkpoints/000060" the result is "RUN/checkpoints/000060". The
// result is borrowed from `path`. [any]
const char *rlhf__path_checkpoint(const char *path);

// ---- writing ----

struct rlhf__folder; // folder.h

// A file that is written under a temporary name in its target's directory. [step]
struct rlhf__file_writer;

// Start writing the file `name` in the folder `in`, which is borrowed until the writer is freed. If
// `in` is NULL, `name` is a path. Creates the file "<name>.tmp-<pid>", and never writes through a
// link of that name. The target changes only when the writer commits.
rlhf_status rlhf__file_writer_open(const struct rlhf__folder *in, const char *name,
                                   struct rlhf__file_writer **out, struct rlhf__error *err);

// Write `n` bytes, through a buffer. After a failure, every later call returns the same failure. If
// the disk is full, returns RLHF_E_IO, with the target's name and the system's reason in the
// message.
rlhf_status rlhf__file_writer_put(struct rlhf__file_writer *w, const void *bytes, size_t n,
                                  struct rlhf__error *err);

// Flush and fsync the file, rename it to the target, and fsync the directory. Frees `w`, also on
// failure. If writing or renaming fails, removes the temporary file and leaves the target
// unchanged.
rlhf_status rlhf__file_writer_commit(struct rlhf__file_writer *w, struct rlhf__error *err);

// Remove the temporary file and free `w`, which may be NULL.
void rlhf__file_writer_abort(struct rlhf__file_writer *w);

// Write a whole file in one call: rlhf__file_writer_open, _put and _commit.
rlhf_status rlhf__file_write(const struct rlhf__folder *in, const char *name, const void *bytes,
                             size_t n, struct rlhf__error *err);

#endif
