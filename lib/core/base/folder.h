// folder.h: a directory held by its descriptor. What is read and written through one stays where it
// was opened, whatever happens to the working directory or to the names above it.
//
// Everywhere here `in` may be NULL: then `name` is a path as anyone would use it. Else name is
// relative to `in` (it may have slashes), and what is opened to be written, or as a directory, is
// not reached through a link in its last part.
#ifndef RLHF_HOST_FOLDER_H
#define RLHF_HOST_FOLDER_H

#include "base/file.h"

struct rlhf__folder {
    int fd;
    int32_t reserved;
    char *path; // for messages
};

// Open an existing directory; close it with rlhf__folder_close. Errors: RLHF_E_INVALID when there
// is none or it is a link, RLHF_E_IO. [any]
rlhf_status rlhf__folder_open(const struct rlhf__folder *in, const char *name,
                              struct rlhf__folder **out, struct rlhf__error *err);
void rlhf__folder_close(struct rlhf__folder *f); // NULL allowed

// Make the directory where it is missing (its name is on disk then) and open it. With `taken` an
// existing entry of that name is not opened: *taken = 1 and RLHF_OK, with *out NULL. [any]
rlhf_status rlhf__folder_make(const struct rlhf__folder *in, const char *name, int *taken,
                              struct rlhf__folder **out, struct rlhf__error *err);

// mkdir -p of the directories above the last part of name, each on disk. [any]
rlhf_status rlhf__folder_make_above(const struct rlhf__folder *in, const char *name,
                                    struct rlhf__error *err);

// Take hold of the directory `dir`: until the returned descriptor is closed, rlhf__folder_is_held()
// is 1 for others, other processes included. real: its absolute path without links, which stays
// valid for as long. Returns -1 when the directory does not exist or its file system lacks locks;
// then `real` is unset or not held. [any]
int rlhf__folder_hold(const char *dir, char real[RLHF__PATH_CAP]);

// 1 when a process holds it. If 0, it cannot be held while f is open and has not been renamed.
// [any]
int rlhf__folder_is_held(const struct rlhf__folder *f);

// fsync the directory `name` ("." = `in` itself): its names are on disk then. [any]
rlhf_status rlhf__folder_sync(const struct rlhf__folder *in, const char *name,
                              struct rlhf__error *err);

// Remove a file or a directory tree, links not followed; a missing one is fine. [any]
rlhf_status rlhf__folder_remove(const struct rlhf__folder *in, const char *name,
                                struct rlhf__error *err);

// Both names are of f. [any]
rlhf_status rlhf__folder_rename(const struct rlhf__folder *f, const char *from, const char *to,
                                struct rlhf__error *err);

// Make the symbolic link name -> target, in the place of a link that is there. [any]
rlhf_status rlhf__folder_link(const struct rlhf__folder *f, const char *target, const char *name,
                              struct rlhf__error *err);

// What the link `name` says, cut to cap - 1 bytes; 0 when it is no link. [any]
int rlhf__folder_target(const struct rlhf__folder *f, const char *name, char *out, size_t cap);

// 1 when there is an entry of that name (a link counts, wherever it points). [any]
int rlhf__folder_has(const struct rlhf__folder *f, const char *name);

// 1 when there is a regular file of that name, behind links or not. [any]
int rlhf__folder_is_file(const struct rlhf__folder *f, const char *name);

// Refuse `name` when it is a symbolic link; a missing one is fine. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__folder_no_link(const struct rlhf__folder *f, const char *name,
                                 struct rlhf__error *err);

// Open a regular file to read and append to, made where it is missing and emptied with `empty`; its
// name is on disk then. A link or anything that is no regular file is refused (RLHF_E_INVALID).
// Caller closes *fd. [any]
rlhf_status rlhf__folder_append(const struct rlhf__folder *f, const char *name, int empty, int *fd,
                                struct rlhf__error *err);

// rlhf__file_read of a file in f. [any]
rlhf_status rlhf__folder_read(const struct rlhf__folder *f, const char *name, uint64_t max_bytes,
                              struct rlhf__buf *out, struct rlhf__error *err);

#endif
