// jsonl.c: see jsonl.h.
#include "report/jsonl.h"

#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES ((uint64_t)1 << 32)

// Bytes of text to keep.
static size_t kept(const struct rlhf__buf *text, int64_t keep_phase) {
    size_t at = 0;
    while (at < text->len) {
        const char *line = text->data + at;
        const char *end = memchr(line, '\n', text->len - at);
        if (!end) break;
        json_t *row = rlhf__json_decode(line, (size_t)(end - line), 0, NULL);
        const json_t *phase = json_object_get(row, "phase");
        int good = json_is_integer(phase) && json_integer_value(phase) <= keep_phase;
        json_decref(row);
        if (!good) break;
        at = (size_t)(end - text->data) + 1;
    }
    return at;
}

static rlhf_status cut(const struct rlhf__jsonl *j, int64_t keep_phase, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_status status = rlhf__file_read(j->path, MAX_BYTES, &text, err);
    if (status == RLHF_OK && ftruncate(j->fd, (off_t)kept(&text, keep_phase)) != 0)
        status =
            rlhf__fail(err, RLHF_E_IO, "%s: cannot cut the file: %s", j->path, strerror(errno));
    rlhf__buf_free(&text);
    return status;
}

rlhf_status rlhf__jsonl_open(const char *dir, const char *name, int64_t keep_phase,
                             struct rlhf__jsonl *out, struct rlhf__error *err) {
    out->fd = -1;
    out->path = rlhf__path_join(dir, name);
    if (!out->path) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", name);
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep_phase < 0 ? O_TRUNC : 0);
    out->fd = open(out->path, flags, 0666);
    rlhf_status status = RLHF_OK;
    if (out->fd < 0)
        status = rlhf__fail(err, RLHF_E_IO, "%s: cannot open: %s", out->path, strerror(errno));
    else if (keep_phase >= 0)
        status = cut(out, keep_phase, err);
    if (status < 0) rlhf__jsonl_close(out);
    return status;
}

void rlhf__jsonl_close(struct rlhf__jsonl *j) {
    if (j->path && j->fd >= 0) close(j->fd);
    free(j->path);
    j->path = NULL;
    j->fd = -1;
}

rlhf_status rlhf__append_all(int fd, const char *path, const void *bytes, size_t n,
                             struct rlhf__error *err) {
    const char *p = bytes;
    off_t start = lseek(fd, 0, SEEK_END);
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            int why = done < 0 ? errno : ENOSPC;
            if (start >= 0 && ftruncate(fd, start) != 0) why = errno; // half a line may stay
            return rlhf__fail(err, RLHF_E_IO, "%s: cannot write: %s", path, strerror(why));
        }
        p += done;
        n -= (size_t)done;
    }
    return RLHF_OK;
}

rlhf_status rlhf__jsonl_append(struct rlhf__jsonl *j, const struct rlhf__buf *lines,
                               struct rlhf__error *err) {
    RLHF_TRY(rlhf__buf_ok(lines, err));
    return rlhf__append_all(j->fd, j->path, rlhf__buf_text(lines), lines->len, err);
}

rlhf_status rlhf__jsonl_sync(struct rlhf__jsonl *j, struct rlhf__error *err) {
    if (fsync(j->fd) == 0 || errno == EINVAL) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "%s: cannot sync: %s", j->path, strerror(errno));
}
