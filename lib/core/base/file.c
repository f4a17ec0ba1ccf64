// file.c: see file.h.
#include "base/file.h"

#include "base/digests.h"
#include "base/folder.h"
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- reading, and paths ----

static rlhf_status read_all(int fd, const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err) {
    uint64_t total = 0;
    for (;;) {
        char chunk[65536];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rlhf__fail(err, RLHF_E_IO, "%s: cannot read: %s", path, strerror(errno));
        if (n == 0) return rlhf__buf_ok(out, err);
        total += (uint64_t)n;
        if (total > max_bytes)
            return rlhf__fail(err, RLHF_E_INVALID, "%s: more than the %llu bytes allowed here",
                              path, (unsigned long long)max_bytes);
        rlhf__buf_put(out, chunk, (size_t)n);
        RLHF_TRY(rlhf__buf_ok(out, err));
    }
}

rlhf_status rlhf__file_read_fd(int fd, const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                               struct rlhf__error *err) {
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: is a directory, a file is needed", path);
    return read_all(fd, path, max_bytes, out, err);
}

static rlhf_status read_and_close(int fd, const char *path, uint64_t max_bytes,
                                  struct rlhf__buf *out, struct rlhf__error *err) {
    if (fd < 0) return rlhf__regular_failed(path, err);
    const rlhf_status st = rlhf__file_read_fd(fd, path, max_bytes, out, err);
    close(fd);
    return st;
}

rlhf_status rlhf__file_read(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err) {
    return read_and_close(rlhf__regular_open(AT_FDCWD, path, 1), path, max_bytes, out, err);
}

rlhf_status rlhf__file_read_stream(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                                   struct rlhf__error *err) {
    return read_and_close(open(path, O_RDONLY | O_CLOEXEC), path, max_bytes, out, err);
}

int rlhf__is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int rlhf__is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

rlhf_status rlhf__file_may_make(const char *path, struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP] = ".";
    const char *base = rlhf__path_base(path);
    if (base - path > 1) snprintf(dir, sizeof dir, "%.*s", (int)(base - path) - 1, path);
    if (base - path == 1) snprintf(dir, sizeof dir, "/");
    if (!*base)
        return rlhf__fail(err, RLHF_E_INVALID, "'%s' cannot be written: it names no file", path);
    if (rlhf__is_dir(dir) && access(dir, W_OK) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "'%s' cannot be written: '%s': %s", path, dir,
                      rlhf__is_dir(dir) ? strerror(errno) : "there is no such directory");
}

_Static_assert(PATH_MAX <= RLHF__PATH_CAP, "realpath() writes up to PATH_MAX bytes");

char *rlhf__path_real(const char *path, char out[RLHF__PATH_CAP]) { return realpath(path, out); }

const char *rlhf__path_put(char out[RLHF__PATH_CAP], const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(out, RLHF__PATH_CAP, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= RLHF__PATH_CAP) *out = '\0';
    return out;
}

char *rlhf__path_join(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b);
    int slash = na > 0 && a[na - 1] != '/';
    char *out = malloc(na + nb + 2);
    if (!out) return NULL;
    memcpy(out, a, na);
    if (slash) out[na++] = '/';
    memcpy(out + na, b, nb);
    out[na + nb] = '\0';
    return out;
}

const char *rlhf__path_in(char *out, size_t cap, const char *dir, const char *name) {
    snprintf(out, cap, "%s/%s", dir, name);
    return out;
}

const char *rlhf__path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *rlhf__path_checkpoint(const char *path) {
    static const char above[] = "checkpoints/";
    const char *base = rlhf__path_base(path);
    const size_t n = sizeof above - 1;
    if ((size_t)(base - path) < n || memcmp(base - n, above, n) != 0) return base;
    const char *at = base - n;
    if (at > path && at[-1] != '/') return base;
    if (at > path) at--; // the slash after the run's name
    while (at > path && at[-1] != '/')
        at--;
    return *at == '/' ? at + 1 : at;
}

// ---- writing ----

#define BUFFER_BYTES ((size_t)1 << 18)
#define HASHED_BYTES ((uint64_t)1 << 20)

// A file that is written under a temporary name in the target's directory, synced, and then renamed
// to the target.
struct rlhf__file_writer {
    const struct rlhf__folder *in; // NULL: the names are paths
    char *name, *temp;
    int fd;
    int why;      // errno of the first failure, 0 = none
    int named;    // 1: the temporary file exists
    int unhashed; // 1: no thread could be started for a digest
    size_t used;
    char *buffer;
    uint64_t size;               // bytes in the file
    struct rlhf__digest *digest; // NULL: none is computed
};

static int at(const struct rlhf__file_writer *w) { return w->in ? w->in->fd : AT_FDCWD; }

static void writer_free(struct rlhf__file_writer *w) {
    rlhf__digest_end(w->digest, 0);
    if (w->fd >= 0) close(w->fd);
    if (w->named && w->temp) unlinkat(at(w), w->temp, 0);
    free(w->name);
    free(w->temp);
    free(w->buffer);
    free(w);
}

static rlhf_status failed(const struct rlhf__file_writer *w, struct rlhf__error *err) {
    rlhf_status code = w->why == ENAMETOOLONG ? RLHF_E_INVALID : RLHF_E_IO;
    rlhf__fail(err, code, "%s%s%s: cannot write: %s", w->in ? w->in->path : "", w->in ? "/" : "",
               w->name, strerror(w->why));
    return code == RLHF_E_INVALID ? RLHF_E_INVALID : RLHF_E_IO; // so that analyzers see a failure
}

// A file with this temporary name may exist already: a killed process that had our process id may
// have left it, or another user may have planted a link there. Remove that file or link instead of
// writing through it.
static void make_temp(struct rlhf__file_writer *w) {
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    w->fd = openat(at(w), w->temp, flags, 0666);
    if (w->fd < 0 && errno == EEXIST && unlinkat(at(w), w->temp, 0) == 0)
        w->fd = openat(at(w), w->temp, flags, 0666);
    if (w->fd < 0) w->why = errno;
    w->named = w->fd >= 0;
}

rlhf_status rlhf__file_writer_open(const struct rlhf__folder *in, const char *name,
                                   struct rlhf__file_writer **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__file_writer *w = calloc(1, sizeof *w);
    if (!w) return RLHF__NOMEM(err, "%s: out of memory", name);
    w->fd = -1;
    w->in = in;
    w->name = strdup(name);
    w->buffer = malloc(BUFFER_BYTES);
    if (asprintf(&w->temp, "%s.tmp-%ld", name, (long)getpid()) < 0) w->temp = NULL;
    if (!w->name || !w->buffer || !w->temp) {
        writer_free(w);
        return RLHF__NOMEM(err, "%s: out of memory", name);
    }
    make_temp(w);
    if (w->fd < 0) {
        rlhf_status st = failed(w, err);
        writer_free(w);
        return st;
    }
    *out = w;
    return RLHF_OK;
}

static void write_out(struct rlhf__file_writer *w, const char *bytes, size_t n) {
    while (n > 0 && !w->why) {
        ssize_t done = write(w->fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            w->why = done < 0 ? errno : ENOSPC;
            return;
        }
        bytes += done;
        n -= (size_t)done;
        w->size += (uint64_t)done;
    }
}

// Start to hash the file on a thread when the file has become large. Does nothing if the folder has
// no digests.
static void hash_along(struct rlhf__file_writer *w) {
    if (!w->in || !w->in->digests || w->size < HASHED_BYTES || w->why) return;
    if (!w->digest && !w->unhashed) {
        const int fd = openat(w->in->fd, w->temp, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) w->digest = rlhf__digest_start(w->in->digests, w->name, fd);
        w->unhashed = !w->digest;
    }
    if (w->digest) rlhf__digest_grown(w->digest, w->size);
}

static void flush(struct rlhf__file_writer *w) {
    write_out(w, w->buffer, w->used);
    w->used = 0;
    hash_along(w);
}

rlhf_status rlhf__file_writer_put(struct rlhf__file_writer *w, const void *bytes, size_t n,
                                  struct rlhf__error *err) {
    if (n > BUFFER_BYTES - w->used) flush(w);
    if (n >= BUFFER_BYTES) {
        write_out(w, bytes, n);
        hash_along(w);
    } else if (n > 0) {
        memcpy(w->buffer + w->used, bytes, n);
        w->used += n;
    }
    return w->why ? failed(w, err) : RLHF_OK;
}

static rlhf_status sync_parent(const struct rlhf__file_writer *w, struct rlhf__error *err) {
    char *dir = strdup(w->name);
    if (!dir) return RLHF__NOMEM(err, "%s: out of memory", w->name);
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = '\0';
    rlhf_status st = rlhf__folder_sync(w->in, slash ? dir : ".", err);
    free(dir);
    return st;
}

rlhf_status rlhf__file_writer_commit(struct rlhf__file_writer *w, struct rlhf__error *err) {
    flush(w);
    if (!w->why) {
        rlhf__digest_end(w->digest, 1);
        w->digest = NULL;
    }
    if (!w->why && fsync(w->fd) != 0 && errno != EINVAL) w->why = errno;
    if (close(w->fd) != 0 && !w->why) w->why = errno;
    w->fd = -1;
    if (!w->why && renameat(at(w), w->temp, at(w), w->name) != 0) w->why = errno;
    if (w->why) {
        rlhf_status st = failed(w, err);
        writer_free(w);
        return st;
    }
    w->named = 0;
    rlhf_status st = sync_parent(w, err);
    writer_free(w);
    return st;
}

void rlhf__file_writer_abort(struct rlhf__file_writer *w) {
    if (w) writer_free(w);
}

rlhf_status rlhf__file_write(const struct rlhf__folder *in, const char *name, const void *bytes,
                             size_t n, struct rlhf__error *err) {
    struct rlhf__file_writer *w;
    RLHF_TRY(rlhf__file_writer_open(in, name, &w, err));
    rlhf_status st = rlhf__file_writer_put(w, bytes, n, err);
    if (st < 0) {
        rlhf__file_writer_abort(w);
        return st;
    }
    return rlhf__file_writer_commit(w, err);
}
