// folder.h: a directory that is held open by its descriptor. Reads and writes through the
// descriptor reach this directory, even if the working directory changes or a parent directory is
// renamed.
//
// In all functions, `name` is relative to the folder `in` and may contain slashes. If `in` is NULL,
// `name` is an ordinary path. Inside a folder, a file to write or a directory to open must not be a
// link.
#ifndef RLHF_CORE_BASE_FOLDER_H
#define RLHF_CORE_BASE_FOLDER_H

#include "base/file.h"

struct rlhf__digests; // digests.h

struct rlhf__folder {
    int fd;
    char *path;                    // for messages
    struct rlhf__digests *digests; // of the files written to this folder; borrowed, may be NULL
};

// Open an existing directory. Close it with rlhf__folder_close. Errors: RLHF_E_INVALID if the
// directory does not exist, is a link or may not be read; otherwise RLHF_E_IO. [any]
rlhf_status rlhf__folder_open(const struct rlhf__folder *in, const char *name,
                              struct rlhf__folder **out, struct rlhf__error *err);
void rlhf__folder_close(struct rlhf__folder *f); // NULL allowed

// Open the directory. If it is missing, create it and sync its name to disk. If `taken` is not
// NULL, an existing directory is not opened: if anything of this name exists already, sets *taken
// to 1 and *out to NULL, and returns RLHF_OK; otherwise sets *taken to 0. Errors: RLHF_E_INVALID if
// the directory cannot exist at this place (permissions, a read-only file system, a bad name);
// otherwise RLHF_E_IO. [any]
rlhf_status rlhf__folder_make(const struct rlhf__folder *in, const char *name, int *taken,
                              struct rlhf__folder **out, struct rlhf__error *err);

// Checks the permissions and the file system of the closest parent of `path` that exists. If they
// do not allow creating the directory `path`, returns RLHF_E_INVALID with a message. Writes
// nothing. [any]
rlhf_status rlhf__folder_may_make(const char *path, struct rlhf__error *err);

// Create the parent directories of `name` that are missing, and sync each to disk. [any]
rlhf_status rlhf__folder_make_above(const struct rlhf__folder *in, const char *name,
                                    struct rlhf__error *err);

// Lock the directory `dir`. Returns a descriptor; closing the descriptor releases the lock. While
// the lock is held, rlhf__folder_is_held() returns 1 to all other callers, including other
// processes. Sets `real` to the directory's absolute path without links. Returns -1 if the
// directory does not exist or its file system lacks locks; `real` may then be unset. [any]
int rlhf__folder_hold(const char *dir, char real[RLHF__PATH_CAP]);

// Returns 1 if a process holds the lock of the directory. Otherwise takes the lock, if the file
// system has locks, and returns 0. Other processes cannot take the lock while `f` is open. [any]
int rlhf__folder_is_held(const struct rlhf__folder *f);

// fsync the directory `name`, so that the names in it are on disk. "." means the folder `in`
// itself. [any]
rlhf_status rlhf__folder_sync(const struct rlhf__folder *in, const char *name,
                              struct rlhf__error *err);

// Remove a file or a directory tree without following links. If it is missing, the function
// succeeds. [any]
rlhf_status rlhf__folder_remove(const struct rlhf__folder *in, const char *name,
                                struct rlhf__error *err);

// Rename `from` to `to`. Both names are relative to `f`. [any]
rlhf_status rlhf__folder_rename(const struct rlhf__folder *f, const char *from, const char *to,
                                struct rlhf__error *err);

// Make `name` a symbolic link to `target`. An existing link is replaced. [any]
rlhf_status rlhf__folder_link(const struct rlhf__folder *f, const char *target, const char *name,
                              struct rlhf__error *err);

// Write the target of the link `name` to `out`, cut to cap - 1 bytes. Returns 1, or 0 if `name` is
// not a link. [any]
int rlhf__folder_target(const struct rlhf__folder *f, const char *name, char *out, size_t cap);

// Returns 1 if an entry of that name exists, even if it is a link to a missing file. [any]
int rlhf__folder_has(const struct rlhf__folder *f, const char *name);

// Returns 1 if `name` is a regular file, or a link to one. [any]
int rlhf__folder_is_file(const struct rlhf__folder *f, const char *name);

// Returns RLHF_E_INVALID if `name` is a symbolic link, and RLHF_OK if it is missing or anything
// else. [any]
rlhf_status rlhf__folder_no_link(const struct rlhf__folder *f, const char *name,
                                 struct rlhf__error *err);

// Open a regular file for reading and appending. If it is missing, create it and sync its name to
// disk. If `empty` is set, truncate it. Anything other than a regular file, including a link, is an
// error (RLHF_E_INVALID). The caller closes *fd. [any]
rlhf_status rlhf__folder_append(const struct rlhf__folder *f, const char *name, int empty, int *fd,
                                struct rlhf__error *err);

// Like rlhf__file_read, for a file in the folder `f`. [any]
rlhf_status rlhf__folder_read(const struct rlhf__folder *f, const char *name, uint64_t max_bytes,
                              struct rlhf__buf *out, struct rlhf__error *err);

#endif
