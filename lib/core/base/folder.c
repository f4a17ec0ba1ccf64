// folder.c: see folder.h.
#include "base/folder.h"

#include "base/buf.h"
#include "base/regular.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int at(const struct rlhf__folder *in) { return in ? in->fd : AT_FDCWD; }

// "in/name" for messages; only "name" if the folder's path is empty.
#define SHOWN(in, name) (in) ? (in)->path : "", (in) && *(in)->path ? "/" : "", name

static rlhf_status failed(const struct rlhf__folder *in, const char *name, const char *what,
                          int why, struct rlhf__error *err) {
    // The user can avoid these errors by choosing another directory, so they are errors of the
    // input.
    const int bad_name =
        why == ENAMETOOLONG || why == ENOENT || why == ENOTDIR || why == EACCES || why == EROFS;
    rlhf_status code = bad_name ? RLHF_E_INVALID : RLHF_E_IO;
    return rlhf__fail(err, code, "%s%s%s: cannot %s: %s", SHOWN(in, name), what, strerror(why));
}

// Takes ownership of `fd`, also on failure.
static rlhf_status wrap(int fd, const struct rlhf__folder *in, const char *name,
                        struct rlhf__folder **out, struct rlhf__error *err) {
    struct rlhf__folder *f = calloc(1, sizeof *f);
    if (f && asprintf(&f->path, "%s%s%s", SHOWN(in, name)) < 0) f->path = NULL;
    if (f && f->path) {
        f->fd = fd;
        *out = f;
        return RLHF_OK;
    }
    free(f);
    close(fd);
    return RLHF__NOMEM(err, "%s%s%s: out of memory", SHOWN(in, name));
}

rlhf_status rlhf__folder_open(const struct rlhf__folder *in, const char *name,
                              struct rlhf__folder **out, struct rlhf__error *err) {
    *out = NULL;
    if (in) RLHF_TRY(rlhf__folder_no_link(in, name, err));
    int fd = openat(at(in), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (in ? O_NOFOLLOW : 0));
    if (fd >= 0) return wrap(fd, in, name, out, err);
    if (errno == ENOENT || errno == ENOTDIR)
        return rlhf__fail(err, RLHF_E_INVALID, "%s%s%s: there is no such directory",
                          SHOWN(in, name));
    return failed(in, name, "open the directory", errno, err);
}

rlhf_status rlhf__folder_may_make(const char *path, struct rlhf__error *err) {
    struct rlhf__buf above = RLHF__BUF_INIT;
    struct stat is;
    rlhf__buf_puts(&above, path);
    char *at = above.bad ? NULL : strrchr(above.data, '/');
    while (at && at > above.data && (*at = '\0', stat(above.data, &is) < 0) && errno == ENOENT)
        at = strrchr(above.data, '/');
    const char *nearest = !at ? "." : at == above.data ? "/" : above.data;
    rlhf_status st = above.bad ? RLHF__NOMEM(err, "%s: out of memory", path) : RLHF_OK;
    // access() would permit a file that is writable and executable.
    int why = 0;
    if (st == RLHF_OK && stat(nearest, &is) == 0 && !S_ISDIR(is.st_mode))
        why = ENOTDIR;
    else if (st == RLHF_OK && access(nearest, W_OK | X_OK) < 0)
        why = errno;
    if (why) st = failed(NULL, path, "create the directory", why, err);
    rlhf__buf_finish(&above);
    return st;
}

void rlhf__folder_close(struct rlhf__folder *f) {
    if (!f) return;
    close(f->fd);
    free(f->path);
    free(f);
}

int rlhf__folder_hold(const char *dir, char real[RLHF__PATH_CAP]) {
    enum { TRIES = 100 }; // how often to follow a link that someone keeps redirecting
    for (int i = 0; i < TRIES && rlhf__path_real(dir, real); i++) {
        struct stat held, named;
        const int fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0) return -1;
        const int bad = flock(fd, LOCK_SH | LOCK_NB) != 0, why = errno;
        if (!bad && fstat(fd, &held) == 0 && stat(real, &named) == 0 &&
            held.st_dev == named.st_dev && held.st_ino == named.st_ino)
            return fd;
        close(fd);
        if (bad && why != EWOULDBLOCK) return -1;
    }
    return -1;
}

int rlhf__folder_is_held(const struct rlhf__folder *f) {
    return flock(f->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

static rlhf_status sync_fd(int fd, const struct rlhf__folder *in, const char *name,
                           struct rlhf__error *err) {
    int bad = fsync(fd), why = errno;
    close(fd);
    // Some file systems cannot sync a directory. Then nothing more can be done to protect its
    // names.
    if (!bad || why == EINVAL || why == ENOTSUP) return RLHF_OK;
    return failed(in, name, "sync the directory", why, err);
}

rlhf_status rlhf__folder_sync(const struct rlhf__folder *in, const char *name,
                              struct rlhf__error *err) {
    int fd = openat(at(in), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(in, name, "open the directory", errno, err);
    return sync_fd(fd, in, name, err);
}

// Sync the parent directory of `name`.
static rlhf_status sync_above(const struct rlhf__folder *in, const char *name,
                              struct rlhf__error *err) {
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    while (n > 0 && name[n - 1] != '/')
        n--;
    if (n == 0) return rlhf__folder_sync(in, ".", err);
    char *above = strndup(name, n);
    if (!above) return RLHF__NOMEM(err, "%s: out of memory", name);
    rlhf_status st = rlhf__folder_sync(in, above, err);
    free(above);
    return st;
}

rlhf_status rlhf__folder_make(const struct rlhf__folder *in, const char *name, int *taken,
                              struct rlhf__folder **out, struct rlhf__error *err) {
    *out = NULL;
    int made = mkdirat(at(in), name, 0777) == 0, why = made ? 0 : errno;
    if (taken) *taken = why == EEXIST;
    if (why == EEXIST && taken) return RLHF_OK;
    if (!made && why != EEXIST) return failed(in, name, "create the directory", why, err);
    if (made) RLHF_TRY(sync_above(in, name, err));
    return rlhf__folder_open(in, name, out, err);
}

// Create one of the parent directories, unless that directory exists.
static rlhf_status make_one(const struct rlhf__folder *in, const char *name,
                            struct rlhf__error *err) {
    struct stat st;
    if (mkdirat(at(in), name, 0777) == 0) return sync_above(in, name, err);
    int why = errno, is_dir = fstatat(at(in), name, &st, 0) == 0 && S_ISDIR(st.st_mode);
    if (why == EEXIST && !is_dir)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s%s%s: cannot create the directory: a file of that name exists",
                          SHOWN(in, name));
    return is_dir ? RLHF_OK : failed(in, name, "create the directory", why, err);
}

rlhf_status rlhf__folder_make_above(const struct rlhf__folder *in, const char *name,
                                    struct rlhf__error *err) {
    char *copy = strdup(name);
    if (!copy) return RLHF__NOMEM(err, "%s: out of memory", name);
    rlhf_status st = RLHF_OK;
    size_t end = strlen(copy);
    while (end > 0 && copy[end - 1] == '/')
        copy[--end] = '\0';
    for (size_t i = 1; i < end && st == RLHF_OK; i++) {
        if (copy[i] != '/') continue;
        copy[i] = '\0';
        st = make_one(in, copy, err);
        copy[i] = '/';
    }
    free(copy);
    return st;
}

rlhf_status rlhf__folder_rename(const struct rlhf__folder *f, const char *from, const char *to,
                                struct rlhf__error *err) {
    if (renameat(f->fd, from, f->fd, to) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "%s/%s: cannot rename to %s: %s", f->path, from, to,
                      strerror(errno));
}

rlhf_status rlhf__folder_link(const struct rlhf__folder *f, const char *target, const char *name,
                              struct rlhf__error *err) {
    unlinkat(f->fd, name, 0);
    if (symlinkat(target, f->fd, name) == 0) return RLHF_OK;
    return failed(f, name, "create the link", errno, err);
}

int rlhf__folder_target(const struct rlhf__folder *f, const char *name, char *out, size_t cap) {
    ssize_t n = readlinkat(f->fd, name, out, cap - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

int rlhf__folder_has(const struct rlhf__folder *f, const char *name) {
    struct stat st;
    return fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int rlhf__folder_is_file(const struct rlhf__folder *f, const char *name) {
    struct stat st;
    return fstatat(f->fd, name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

rlhf_status rlhf__folder_no_link(const struct rlhf__folder *f, const char *name,
                                 struct rlhf__error *err) {
    struct stat st;
    if (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/%s is a symbolic link, and links in a run directory are not followed; "
                      "put a real file or directory there",
                      f->path, name);
}

rlhf_status rlhf__folder_append(const struct rlhf__folder *f, const char *name, int empty, int *fd,
                                struct rlhf__error *err) {
    struct stat st;
    *fd = -1;
    RLHF_TRY(rlhf__folder_no_link(f, name, err));
    // O_NONBLOCK, so that a pipe of that name does not block the program.
    int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int got = openat(f->fd, name, flags | (empty ? O_TRUNC : 0), 0666);
    if (got < 0) return failed(f, name, "open", errno, err);
    rlhf_status status = RLHF_OK;
    if (fstat(got, &st) != 0 || !S_ISREG(st.st_mode))
        status = rlhf__fail(err, RLHF_E_INVALID, "%s/%s is not a regular file", f->path, name);
    if (status == RLHF_OK) status = rlhf__folder_sync(f, ".", err);
    if (status == RLHF_OK)
        *fd = got;
    else
        close(got);
    return status;
}

rlhf_status rlhf__folder_read(const struct rlhf__folder *f, const char *name, uint64_t max_bytes,
                              struct rlhf__buf *out, struct rlhf__error *err) {
    char *shown = rlhf__path_join(f->path, name);
    if (!shown) return RLHF__NOMEM(err, "%s: out of memory", name);
    const int fd = rlhf__regular_open(f->fd, name, 1);
    rlhf_status st = fd < 0 ? rlhf__regular_failed(shown, err)
                            : rlhf__file_read_fd(fd, shown, max_bytes, out, err);
    if (fd >= 0) close(fd);
    free(shown);
    return st;
}

// ---- removing trees ----

static int remove_at(int dir, const char *name);

// Remove the contents of the directory `fd`, and close `fd`. Returns 0 if everything was removed.
static int empty_dir(int fd) {
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return -1;
    }
    int bad = 0;
    struct dirent *e;
    while (!bad && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            bad = remove_at(dirfd(d), e->d_name);
    int why = errno;
    closedir(d);
    errno = why;
    return bad;
}

// Returns 0 if the entry is gone, otherwise -1 with errno set.
static int remove_at(int dir, const char *name) {
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return -1; // EPERM: POSIX's error for a directory
    // Some file systems skip entries while others are being removed: read the directory again.
    for (int tries = 0; tries < 100; tries++) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) return -1;
        if (empty_dir(fd) != 0) return -1;
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
        if (errno != ENOTEMPTY && errno != EEXIST) return -1;
    }
    return -1;
}

rlhf_status rlhf__folder_remove(const struct rlhf__folder *in, const char *name,
                                struct rlhf__error *err) {
    if (remove_at(in ? in->fd : AT_FDCWD, name) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "%s%s%s: cannot remove: %s", in ? in->path : "",
                      in ? "/" : "", name, strerror(errno));
}
