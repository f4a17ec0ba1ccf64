// jsonl.c: see jsonl.h.
#include "report/jsonl.h"

#include "base/decimal.h"
#include "base/file.h"
#include "base/json.h"
#include "report/metrics_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

rlhf_status rlhf__append_buf(int fd, const char *path, const struct rlhf__buf *bytes,
                             struct rlhf__error *err) {
    RLHF_TRY(rlhf__buf_ok(bytes, err));
    const char *p = bytes->data;
    off_t start = lseek(fd, 0, SEEK_END);
    for (size_t n = bytes->len; n > 0;) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            int why = done < 0 ? errno : ENOSPC;
            if (start >= 0 && ftruncate(fd, start) != 0) why = errno; // do not leave half a line
            return rlhf__fail(err, RLHF_E_IO, "%s: cannot write: %s", path, strerror(why));
        }
        p += done;
        n -= (size_t)done;
    }
    return RLHF_OK;
}

rlhf_status rlhf__append_sync(int fd, const char *path, struct rlhf__error *err) {
    if (fsync(fd) == 0 || errno == EINVAL) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "%s: cannot sync: %s", path, strerror(errno));
}

#define MAX_BYTES ((uint64_t)1 << 32)

// The result of scan() for the file of a resumed run.
struct found {
    size_t kept;           // bytes up to the end of the last row to keep
    int64_t odd, odd_line; // invalid lines before that end; the number of the first of them
    int64_t later;         // rows of later phases before that end
};

enum kind { ROW, LATER_ROW, NO_ROW };

static enum kind kind_of(const char *line, size_t n, int64_t keep_phase) {
    json_t *row = rlhf__json_decode(line, n, JSON_ALLOW_NUL, NULL);
    const json_t *phase = json_object_get(row, "phase");
    enum kind kind = !json_is_integer(phase)                  ? NO_ROW
                     : json_integer_value(phase) > keep_phase ? LATER_ROW
                                                              : ROW;
    json_decref(row);
    return kind;
}

// Find the last row to keep. A last line without a newline is dropped, because the process died
// while writing it.
static struct found scan(const struct rlhf__buf *text, int64_t keep_phase) {
    struct found f = {0};
    int64_t odd = 0, odd_line = 0, later = 0, number = 0; // since the last row to keep
    for (size_t at = 0; at < text->len;) {
        const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
        if (!end) break;
        number++;
        at = (size_t)(end - text->data) + 1;
        const enum kind kind = kind_of(line, (size_t)(end - line), keep_phase);
        later += kind == LATER_ROW;
        if (kind == NO_ROW && odd++ == 0) odd_line = number;
        if (kind != ROW && later > 0) continue;
        if (odd > 0 && f.odd == 0) f.odd_line = odd_line;
        f.odd += odd;
        f.later += later;
        f.kept = at;
        odd = later = 0;
    }
    return f;
}

// Write the file again without the rows of later phases, and open the new file.
static rlhf_status leave_out(struct rlhf__jsonl *j, const struct rlhf__folder *run,
                             const char *name, const struct rlhf__buf *text, size_t kept,
                             int64_t keep_phase, struct rlhf__error *err) {
    struct rlhf__buf left = RLHF__BUF_INIT;
    for (size_t at = 0, to; at < kept; at = to) {
        const char *line = text->data + at, *end = memchr(line, '\n', kept - at);
        to = (size_t)(end - text->data) + 1;
        if (kind_of(line, to - at - 1, keep_phase) != LATER_ROW)
            rlhf__buf_put(&left, line, to - at);
    }
    rlhf_status st = rlhf__buf_ok(&left, err);
    if (st == RLHF_OK) st = rlhf__file_write(run, name, left.data, left.len, err);
    rlhf__buf_free(&left);
    if (st != RLHF_OK) return st;
    close(j->fd);
    return rlhf__folder_append(run, name, 0, &j->fd, err);
}

static rlhf_status cut(struct rlhf__jsonl *j, const struct rlhf__folder *run, const char *name,
                       int64_t keep_phase, struct rlhf__log *log, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_status st = rlhf__file_read_fd(j->fd, j->path, MAX_BYTES, &text, err);
    struct found f = scan(&text, keep_phase);
    if (st == RLHF_OK && f.later > 0)
        st = leave_out(j, run, name, &text, f.kept, keep_phase, err);
    else if (st == RLHF_OK && ftruncate(j->fd, (off_t)f.kept) != 0)
        st = rlhf__fail(err, RLHF_E_IO, "%s: cannot cut the file: %s", j->path, strerror(errno));
    rlhf__buf_free(&text);
    if (st == RLHF_OK && f.odd > 0)
        rlhf__logf(log, RLHF_LOG_WARN,
                   "%s:%lld: no row of the phases done, and %lld such line%s in all; left as %s",
                   j->path, (long long)f.odd_line, (long long)f.odd, f.odd == 1 ? "" : "s",
                   f.odd == 1 ? "it is" : "they are");
    return st;
}

rlhf_status rlhf__jsonl_open(const struct rlhf__folder *run, const char *name, int64_t keep_phase,
                             struct rlhf__log *log, struct rlhf__jsonl *out,
                             struct rlhf__error *err) {
    out->fd = -1;
    out->path = rlhf__path_join(run->path, name);
    if (!out->path) return RLHF__NOMEM(err, "%s: out of memory", name);
    rlhf_status st = rlhf__folder_append(run, name, keep_phase < 0, &out->fd, err);
    if (st == RLHF_OK && keep_phase >= 0) st = cut(out, run, name, keep_phase, log, err);
    if (st < 0) rlhf__jsonl_close(out);
    return st;
}

void rlhf__jsonl_close(struct rlhf__jsonl *j) {
    if (j->path && j->fd >= 0) close(j->fd);
    free(j->path);
    j->path = NULL;
    j->fd = -1;
}

rlhf_status rlhf__jsonl_append(struct rlhf__jsonl *j, const struct rlhf__buf *lines,
                               struct rlhf__error *err) {
    return rlhf__append_buf(j->fd, j->path, lines, err);
}

rlhf_status rlhf__jsonl_sync(struct rlhf__jsonl *j, struct rlhf__error *err) {
    return rlhf__append_sync(j->fd, j->path, err);
}

rlhf_status rlhf__jsonl_each(const struct rlhf__folder *run, const char *name,
                             rlhf_status (*visit)(void *arg, json_t *row, struct rlhf__error *err),
                             void *arg, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (!rlhf__folder_has(run, name)) return RLHF_OK;
    rlhf_status st = rlhf__folder_read(run, name, MAX_BYTES, &text, err);
    const char *at = rlhf__buf_text(&text);
    for (const char *end; st == RLHF_OK && (end = strchr(at, '\n')); at = end + 1) {
        json_t *row = rlhf__json_decode(at, (size_t)(end - at), JSON_ALLOW_NUL, NULL);
        st = visit(arg, row, err);
        json_decref(row);
    }
    rlhf__buf_free(&text);
    return st;
}

struct sum {
    const char *member;
    double value;
};

static rlhf_status add(void *arg, json_t *row, struct rlhf__error *err) {
    struct sum *sum = arg;
    (void)err;
    sum->value += json_number_value(json_object_get(row, sum->member));
    return RLHF_OK;
}

double rlhf__jsonl_sum(const struct rlhf__folder *run, const char *name, const char *member) {
    struct sum sum = {member, 0};
    struct rlhf__error unread;
    rlhf__jsonl_each(run, name, add, &sum, &unread);
    return sum.value;
}

// ---- metrics.jsonl: {"phase": n, <names sorted>}; values that are not finite are null ----

static rlhf_status jsonl_open(const struct rlhf__folder *run, int64_t keep_phase,
                              struct rlhf__log *log, void **self, struct rlhf__error *err) {
    struct rlhf__jsonl *j = *self = calloc(1, sizeof *j);
    if (!j) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    return rlhf__jsonl_open(run, rlhf__metrics_file_jsonl.name, keep_phase, log, j, err);
}

static rlhf_status jsonl_row(void *self, const struct rlhf__metrics_row *r,
                             struct rlhf__error *err) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    char number[40];
    rlhf__buf_printf(&line, "{\"phase\": %lld", (long long)r->phase);
    for (size_t i = 0; i < r->n; i++) {
        rlhf__buf_puts(&line, ", ");
        rlhf__json_write_string(&line, r->metric[i].name, strlen(r->metric[i].name));
        rlhf__buf_puts(&line, ": ");
        rlhf__buf_puts(&line, rlhf__format_double(r->metric[i].value, 0, number));
    }
    rlhf__buf_puts(&line, "}\n");
    rlhf_status st = rlhf__jsonl_append(self, &line, err);
    rlhf__buf_free(&line);
    return st;
}

static rlhf_status jsonl_sync(void *self, struct rlhf__error *err) {
    return rlhf__jsonl_sync(self, err);
}

static void jsonl_close(void *self) {
    if (self) rlhf__jsonl_close(self);
    free(self);
}

const struct rlhf__metrics_file rlhf__metrics_file_jsonl = {.name = "metrics.jsonl",
                                                            .open = jsonl_open,
                                                            .row = jsonl_row,
                                                            .sync = jsonl_sync,
                                                            .close = jsonl_close};
