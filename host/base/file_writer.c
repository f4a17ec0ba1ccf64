// file_writer.c: the atomic writer of file.h: temporary beside the target, fsync, rename.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 18)

struct rlhf__file_writer {
    char *target, *temp;
    int fd;
    int why;   // errno of the first failure, 0 = none
    int named; // 1: the temporary exists
    int reserved;
    uint64_t total;
    size_t used;
    char *buffer;
};

static void writer_free(struct rlhf__file_writer *w) {
    if (w->fd >= 0) close(w->fd);
    if (w->named && w->temp) unlink(w->temp);
    free(w->target);
    free(w->temp);
    free(w->buffer);
    free(w);
}

static rlhf_status failed(const struct rlhf__file_writer *w, struct rlhf__error *err) {
    rlhf__fail(err, RLHF_E_IO, "%s: cannot write: %s", w->target, strerror(w->why));
    return RLHF_E_IO; // a constant, so that analysers see a failure
}

rlhf_status rlhf__file_writer_open(const char *target, struct rlhf__file_writer **out,
                                   struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__file_writer *w = calloc(1, sizeof *w);
    if (!w) {
        rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", target);
        return RLHF_E_NOMEM;
    }
    w->fd = -1;
    w->target = strdup(target);
    w->buffer = malloc(BUFFER_BYTES);
    if (asprintf(&w->temp, "%s.tmp-%ld", target, (long)getpid()) < 0) w->temp = NULL;
    if (!w->target || !w->buffer || !w->temp) {
        writer_free(w);
        rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", target);
        return RLHF_E_NOMEM;
    }
    // A leftover of a killed process with our number may be in the way.
    w->fd = open(w->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->fd < 0) {
        w->why = errno;
        rlhf_status status = failed(w, err);
        writer_free(w);
        return status;
    }
    w->named = 1;
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
    w->total += n;
    return w->why ? failed(w, err) : RLHF_OK;
}

uint64_t rlhf__file_writer_size(const struct rlhf__file_writer *w) { return w->total; }

static rlhf_status sync_parent(const char *target, struct rlhf__error *err) {
    char *dir = strdup(target);
    if (!dir) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", target);
    char *slash = strrchr(dir, '/');
    if (slash == dir)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    rlhf_status status = rlhf__sync_dir(slash ? dir : ".", err);
    free(dir);
    return status;
}

rlhf_status rlhf__file_writer_commit(struct rlhf__file_writer *w, struct rlhf__error *err) {
    flush(w);
    if (!w->why && fsync(w->fd) != 0 && errno != EINVAL) w->why = errno;
    if (close(w->fd) != 0 && !w->why) w->why = errno;
    w->fd = -1;
    if (!w->why && rename(w->temp, w->target) != 0) w->why = errno;
    if (w->why) {
        rlhf_status status = failed(w, err);
        writer_free(w);
        return status;
    }
    w->named = 0;
    rlhf_status status = sync_parent(w->target, err);
    writer_free(w);
    return status;
}

void rlhf__file_writer_abort(struct rlhf__file_writer *w) {
    if (w) writer_free(w);
}

rlhf_status rlhf__file_write(const char *target, const void *bytes, size_t n,
                             struct rlhf__error *err) {
    struct rlhf__file_writer *w;
    RLHF_TRY(rlhf__file_writer_open(target, &w, err));
    rlhf_status status = rlhf__file_writer_put(w, bytes, n, err);
    if (status < 0) {
        rlhf__file_writer_abort(w);
        return status;
    }
    return rlhf__file_writer_commit(w, err);
}
