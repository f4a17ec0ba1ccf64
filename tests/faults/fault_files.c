// fault_files.c: operations that change files: open for writing, write, ftruncate, fsync, rename,
// link, symlink, unlink, rmdir, mkdir. Output on descriptors 0 to 2 does not count.
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Counts operation `op` on `path` in the directory `dir`. If `path` is NULL, the operation is on
// the descriptor `dir` itself.
static int fails(const char *op, int dir, const char *path) {
    fault_note(op, dir, path);
    return fault_strikes(-1, NULL, 0);
}

static int is_new(int dir, const char *path) {
    int saved = errno, new = syscall(SYS_faccessat, dir, path, F_OK) != 0;
    errno = saved;
    return new;
}

static int open_at(int dir, const char *path, int flags, mode_t mode) {
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    int makes = flags & O_CREAT && is_new(dir, path);
    if (writes && fails(makes ? "make" : flags & O_TRUNC ? "empty" : "open", dir, path)) return -1;
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

// Reads open's third argument, which exists only if a file may be created.
static mode_t mode_of(int flags, va_list ap) {
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(ap, int) : 0;
}

int open(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int dir, const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return open_at(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...) {
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return open_at(dir, path, flags | O_LARGEFILE, mode);
}

ssize_t write(int fd, const void *bytes, size_t n) {
    if (fd > 2) fault_note("write", fd, NULL);
    if (fd > 2 && fault_strikes(fd, bytes, n)) return -1;
    return syscall(SYS_write, fd, bytes, n);
}

int ftruncate(int fd, off_t n) {
    return fails("write", fd, NULL) ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}
int fsync(int fd) { return fails("sync", fd, NULL) ? -1 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return fails("sync", fd, NULL) ? -1 : (int)syscall(SYS_fdatasync, fd); }

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    fault_note("from", from_dir, from);
    return fails("rename", to_dir, to)
               ? -1
               : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return renameat2(from_dir, from, to_dir, to, 0);
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    return fails("make", to_dir, to) ? -1
                                     : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *target_path, int dir, const char *path) {
    return fails("make", dir, path) ? -1 : (int)syscall(SYS_symlinkat, target_path, dir, path);
}

int symlink(const char *target_path, const char *path) {
    return symlinkat(target_path, AT_FDCWD, path);
}

int unlinkat(int dir, const char *path, int flags) {
    return fails("remove", dir, path) ? -1 : (int)syscall(SYS_unlinkat, dir, path, flags);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

// C's remove() would call unlink() or rmdir() inside libc, and these calls would not be counted.
int remove(const char *path) {
    int saved = errno;
    if (fails("remove", AT_FDCWD, path)) return -1;
    if (syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0) return 0;
    if (errno != EISDIR) return -1;
    errno = saved;
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdirat(int dir, const char *path, mode_t mode) {
    return fails(is_new(dir, path) ? "make" : "open", dir, path)
               ? -1
               : (int)syscall(SYS_mkdirat, dir, path, mode);
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
