// file_writer.c: see file_writer.h: temporary beside the target, fsync, rename.
#include "base/file_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 18)

struct rlhf__file_writer {
    const struct rlhf__folder *in; // NULL: the names are paths
    char *name, *temp;
    int fd;
    int why;   // errno of the first failure, 0 = none
    int named; // 1: the temporary exists
    int reserved;
    size_t used;
    char *buffer;
};

static int at(const struct rlhf__file_writer *w) { return w->in ? w->in->fd : AT_FDCWD; }

static void writer_free(struct rlhf__file_writer *w) {
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
    return code == RLHF_E_INVALID ? RLHF_E_INVALID : RLHF_E_IO; // seen as a failure by analysers
}

// A leftover of a killed process with our number, or a link that someone put there, may be in the
// way: it goes, and is not written through.
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
        rlhf_status status = failed(w, err);
        writer_free(w);
        return status;
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
    }
}

static void flush(struct rlhf__file_writer *w) {
    write_out(w, w->buffer, w->used);
    w->used = 0;
}

rlhf_status rlhf__file_writer_put(struct rlhf__file_writer *w, const void *bytes, size_t n,
                                  struct rlhf__error *err) {
    if (n > BUFFER_BYTES - w->used) flush(w);
    if (n >= BUFFER_BYTES) {
        write_out(w, bytes, n);
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
    rlhf_status status = rlhf__folder_sync(w->in, slash ? dir : ".", err);
    free(dir);
    return status;
}

rlhf_status rlhf__file_writer_commit(struct rlhf__file_writer *w, struct rlhf__error *err) {
    flush(w);
    if (!w->why && fsync(w->fd) != 0 && errno != EINVAL) w->why = errno;
    if (close(w->fd) != 0 && !w->why) w->why = errno;
    w->fd = -1;
    if (!w->why && renameat(at(w), w->temp, at(w), w->name) != 0) w->why = errno;
    if (w->why) {
        rlhf_status status = failed(w, err);
        writer_free(w);
        return status;
    }
    w->named = 0;
    rlhf_status status = sync_parent(w, err);
    writer_free(w);
    return status;
}

void rlhf__file_writer_abort(struct rlhf__file_writer *w) {
    if (w) writer_free(w);
}

rlhf_status rlhf__file_write(const struct rlhf__folder *in, const char *name, const void *bytes,
                             size_t n, struct rlhf__error *err) {
    struct rlhf__file_writer *w;
    RLHF_TRY(rlhf__file_writer_open(in, name, &w, err));
    rlhf_status status = rlhf__file_writer_put(w, bytes, n, err);
    if (status < 0) {
        rlhf__file_writer_abort(w);
        return status;
    }
    return rlhf__file_writer_commit(w, err);
}
