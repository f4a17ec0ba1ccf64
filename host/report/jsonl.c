// jsonl.c: see jsonl.h.
#include "report/jsonl.h"

#include "base/file.h"
#include "base/json.h"
#include "base/regular.h"

#include <errno.h>
#include <stdio.h>
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

// ---- reading lines, in constant memory ----

enum { BLOCK = 1 << 16 };
#define LINE_MOST ((size_t)8 << 20) // of a longer line, only its beginning is read

struct lines {
    int fd;
    const char *path;      // for messages
    struct rlhf__buf line; // the current line, without its line end
    char *block;           // [BLOCK] bytes that were read ahead, from `at` to `have`
    size_t at, have;
    off_t next;    // the offset of the block's end in the file
    off_t from;    // the offset of the current line
    int64_t count; // number of lines so far
};

static rlhf_status lines_open(int fd, const char *path, struct lines *out,
                              struct rlhf__error *err) {
    *out = (struct lines){.fd = fd, .path = path, .line = RLHF__BUF_INIT, .block = malloc(BLOCK)};
    return out->block ? RLHF_OK : RLHF__NOMEM(err, "%s: out of memory", path);
}

static void lines_finish(struct lines *l) {
    rlhf__buf_finish(&l->line);
    free(l->block);
}

static off_t lines_end(const struct lines *l) { return l->next - (off_t)(l->have - l->at); }

// Read the next line. *more is 0 at the end of the file; a last line without a newline is dropped,
// because the process died while writing it.
static rlhf_status lines_next(struct lines *l, int *more, struct rlhf__error *err) {
    rlhf__buf_clear(&l->line);
    l->from = lines_end(l);
    for (const char *end = NULL; !end;) {
        *more = 0;
        if (l->at == l->have) {
            const ssize_t n = pread(l->fd, l->block, BLOCK, l->next);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0)
                return rlhf__fail(err, RLHF_E_IO, "%s: cannot read: %s", l->path, strerror(errno));
            if (n == 0) return RLHF_OK;
            l->at = 0;
            l->have = (size_t)n;
            l->next += n;
        }
        const char *from = l->block + l->at;
        end = memchr(from, '\n', l->have - l->at);
        const size_t n = end ? (size_t)(end - from) : l->have - l->at;
        const size_t room = LINE_MOST - l->line.len;
        rlhf__buf_put(&l->line, from, n < room ? n : room);
        l->at += n + (end != NULL);
    }
    *more = 1;
    l->count++;
    return rlhf__buf_ok(&l->line, err);
}

// ---- cutting back ----

// The result of scan() for the file of a resumed run.
struct found {
    off_t kept;            // bytes up to the end of the last row to keep
    int64_t odd, odd_line; // invalid lines before that end; the number of the first of them
    int64_t later;         // rows of later phases before that end
};

enum kind { ROW, LATER_ROW, NO_ROW };

static enum kind kind_of(const struct rlhf__buf *line, int64_t keep_phase) {
    long long at_start;
    if (line->len == LINE_MOST) { // too long to be decoded
        if (sscanf(rlhf__buf_text(line), "{\"phase\": %lld,", &at_start) != 1) return NO_ROW;
        return at_start > keep_phase ? LATER_ROW : ROW;
    }
    json_t *row = rlhf__json_decode(rlhf__buf_text(line), line->len, JSON_ALLOW_NUL, NULL);
    const json_t *phase = json_object_get(row, "phase");
    enum kind kind = !json_is_integer(phase)                  ? NO_ROW
                     : json_integer_value(phase) > keep_phase ? LATER_ROW
                                                              : ROW;
    json_decref(row);
    return kind;
}

// Find the last row to keep.
static rlhf_status scan(struct lines *l, int64_t keep_phase, struct found *f,
                        struct rlhf__error *err) {
    int64_t odd = 0, odd_line = 0, later = 0; // since the last row to keep
    for (int more = 1;;) {
        RLHF_TRY(lines_next(l, &more, err));
        if (!more) return RLHF_OK;
        const enum kind kind = kind_of(&l->line, keep_phase);
        later += kind == LATER_ROW;
        if (kind == NO_ROW && odd++ == 0) odd_line = l->count;
        if (kind != ROW && later > 0) continue;
        if (odd > 0 && f->odd == 0) f->odd_line = odd_line;
        f->odd += odd;
        f->later += later;
        f->kept = lines_end(l);
        odd = later = 0;
    }
}

// Copy the bytes [from, to) of the file.
static rlhf_status copy(const struct lines *l, off_t from, off_t to, struct rlhf__file_writer *out,
                        struct rlhf__error *err) {
    char block[4096];
    while (from < to) {
        const size_t want = to - from < (off_t)sizeof block ? (size_t)(to - from) : sizeof block;
        const ssize_t n = pread(l->fd, block, want, from);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return rlhf__fail(err, RLHF_E_IO, "%s: cannot read: %s", l->path,
                              n < 0 ? strerror(errno) : "it has become shorter");
        RLHF_TRY(rlhf__file_writer_put(out, block, (size_t)n, err));
        from += n;
    }
    return RLHF_OK;
}

static rlhf_status copy_kept(struct lines *l, off_t kept, int64_t keep_phase,
                             struct rlhf__file_writer *out, struct rlhf__error *err) {
    for (int more = 1; lines_end(l) < kept;) {
        RLHF_TRY(lines_next(l, &more, err));
        if (!more) return RLHF_OK;
        if (kind_of(&l->line, keep_phase) != LATER_ROW)
            RLHF_TRY(copy(l, l->from, lines_end(l), out, err));
    }
    return RLHF_OK;
}

// Write the file again without the rows of later phases, and open the new file.
static rlhf_status leave_out(struct rlhf__jsonl *j, const struct rlhf__folder *run,
                             const char *name, off_t kept, int64_t keep_phase,
                             struct rlhf__error *err) {
    struct rlhf__file_writer *out = NULL;
    struct lines l;
    RLHF_TRY(rlhf__file_writer_open(run, name, &out, err));
    rlhf_status st = lines_open(j->fd, j->path, &l, err);
    if (st == RLHF_OK) st = copy_kept(&l, kept, keep_phase, out, err);
    lines_finish(&l);
    if (st != RLHF_OK) {
        rlhf__file_writer_abort(out);
        return st;
    }
    RLHF_TRY(rlhf__file_writer_commit(out, err));
    close(j->fd);
    j->fd = -1;
    return rlhf__folder_append(run, name, 0, &j->fd, err);
}

static rlhf_status cut(struct rlhf__jsonl *j, const struct rlhf__folder *run, const char *name,
                       int64_t keep_phase, struct rlhf__log *log, struct rlhf__error *err) {
    struct found f = {0};
    struct lines l;
    rlhf_status st = lines_open(j->fd, j->path, &l, err);
    if (st == RLHF_OK) st = scan(&l, keep_phase, &f, err);
    lines_finish(&l);
    if (st == RLHF_OK && f.later > 0)
        st = leave_out(j, run, name, f.kept, keep_phase, err);
    else if (st == RLHF_OK && ftruncate(j->fd, f.kept) != 0)
        st = rlhf__fail(err, RLHF_E_IO, "%s: cannot cut the file: %s", j->path, strerror(errno));
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

static rlhf_status each(struct lines *l,
                        rlhf_status (*visit)(void *arg, json_t *row, struct rlhf__error *err),
                        void *arg, struct rlhf__error *err) {
    for (int more = 1;;) {
        RLHF_TRY(lines_next(l, &more, err));
        if (!more) return RLHF_OK;
        json_t *row =
            rlhf__json_decode(rlhf__buf_text(&l->line), l->line.len, JSON_ALLOW_NUL, NULL);
        const rlhf_status st = visit(arg, row, err);
        json_decref(row);
        if (st != RLHF_OK) return st;
    }
}

rlhf_status rlhf__jsonl_each(const struct rlhf__folder *run, const char *name,
                             rlhf_status (*visit)(void *arg, json_t *row, struct rlhf__error *err),
                             void *arg, struct rlhf__error *err) {
    struct lines l = {.fd = -1};
    if (!rlhf__folder_has(run, name)) return RLHF_OK;
    char *path = rlhf__path_join(run->path, name);
    if (!path) return RLHF__NOMEM(err, "%s: out of memory", name);
    const int fd = rlhf__regular_open(run->fd, name, 1);
    rlhf_status st = fd < 0 ? rlhf__regular_failed(path, err) : lines_open(fd, path, &l, err);
    if (st == RLHF_OK) st = each(&l, visit, arg, err);
    if (fd >= 0) lines_finish(&l);
    if (fd >= 0) close(fd);
    free(path);
    return st;
}
