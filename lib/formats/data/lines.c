// lines.c: see lines.h. zlib reads plain files as they are, so there is one path for both.
#include "data/lines.h"

#include "base/file.h"
#include "data/kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define FIRST_BYTES ((size_t)1 << 18) // of the buffer, which grows with the longest line

struct rlhf__lines {
    gzFile file;
    const char *path;
    char *data; // [cap] bytes [begin, end) are read and not yet given out
    size_t begin, end, cap;
    int64_t number;
    int32_t at_end, reserved;
};

// fd -1: the path is opened. An fd is taken over, also on failure.
static rlhf_status open_lines(const char *path, int fd, struct rlhf__lines **out,
                              struct rlhf__error *err) {
    struct rlhf__lines *l = calloc(1, sizeof *l);
    char *data = l ? malloc(FIRST_BYTES) : NULL;
    errno = data ? 0 : ENOMEM;
    gzFile file = !data ? NULL : fd < 0 ? gzopen(path, "rb") : gzdopen(fd, "rb");
    if (!file) {
        int why = errno ? errno : ENOMEM;
        int wrong = why == ENOENT || why == ENOTDIR || why == ENAMETOOLONG || why == EACCES;
        free(data);
        free(l);
        if (fd >= 0) close(fd);
        return rlhf__fail(err, wrong ? RLHF_E_INVALID : RLHF_E_IO, "cannot open %s: %s", path,
                          strerror(why));
    }
    *l = (struct rlhf__lines){.file = file, .path = path, .data = data, .cap = FIRST_BYTES};
    gzbuffer(l->file, 1 << 17);
    rlhf_status st = rlhf__data_kind_check(path, err);
    int first = st == RLHF_OK ? gzgetc(l->file) : -1;
    if (first >= 0) gzungetc(first, l->file);
    if (st == RLHF_OK) st = rlhf__data_begin_check(path, first, err);
    if (st == RLHF_OK)
        *out = l;
    else
        rlhf__lines_close(l);
    return st;
}

rlhf_status rlhf__lines_open(const char *path, const char *setting, struct rlhf__lines **out,
                             struct rlhf__error *err) {
    rlhf_status st;
    if (rlhf__is_dir(path))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s is a directory, expected a file", path);
    else
        st = open_lines(path, -1, out, err);
    return st == RLHF_OK || !setting ? st : rlhf__error_context(err, "%s", setting);
}

rlhf_status rlhf__lines_open_stdin(struct rlhf__lines **out, struct rlhf__error *err) {
    int fd = dup(STDIN_FILENO);
    if (fd < 0)
        return rlhf__fail(err, RLHF_E_IO, "standard input cannot be read: %s", strerror(errno));
    return open_lines("standard input", fd, out, err);
}

void rlhf__lines_close(struct rlhf__lines *l) {
    if (!l) return;
    gzclose_r(l->file);
    free(l->data);
    free(l);
}

static rlhf_status read_error(struct rlhf__lines *l, struct rlhf__error *err) {
    int code = Z_OK;
    const char *why = gzerror(l->file, &code);
    if (code == Z_OK) return RLHF_OK;
    if (code == Z_BUF_ERROR)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the gzip file is truncated (after line %lld)",
                          l->path, (long long)l->number);
    if (code == Z_ERRNO)
        return rlhf__fail(err, RLHF_E_IO, "cannot read %s: %s", l->path, strerror(errno));
    return rlhf__fail(err, code == Z_MEM_ERROR ? RLHF_E_NOMEM : RLHF_E_INVALID,
                      "%s: the gzip file is damaged after line %lld: %s", l->path,
                      (long long)l->number, why);
}

// Read more behind `end`.
static rlhf_status fill(struct rlhf__lines *l, struct rlhf__error *err) {
    if (l->begin) {
        memmove(l->data, l->data + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->cap - l->end < 65536) {
        size_t cap = l->cap * 2;
        char *data = realloc(l->data, cap);
        if (!data) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %s", l->path);
        l->data = data;
        l->cap = cap;
    }
    int n = gzread(l->file, l->data + l->end, (unsigned)(l->cap - l->end));
    if (n <= 0) {
        RLHF_TRY(read_error(l, err));
        l->at_end = 1;
        return RLHF_OK;
    }
    l->end += (size_t)n;
    return RLHF_OK;
}

// Cut [begin, begin + len) off as the next line, `skip` more bytes being its end.
static rlhf_str take(struct rlhf__lines *l, size_t len, size_t skip) {
    const char *s = l->data + l->begin;
    l->begin += len + skip;
    l->number++;
    if (len && s[len - 1] == '\r') len--;
    if (l->number == 1 && len >= 3 && !memcmp(s, "\xEF\xBB\xBF", 3)) {
        s += 3;
        len -= 3;
    }
    return (rlhf_str){s, len};
}

rlhf_status rlhf__lines_next(struct rlhf__lines *l, rlhf_str *line, int64_t *number, int *more,
                             struct rlhf__error *err) {
    size_t seen = 0; // bytes after begin that hold no line end
    *more = 1;
    for (;;) {
        size_t have = l->end - l->begin;
        const char *eol = memchr(l->data + l->begin + seen, '\n', have - seen);
        if ((eol ? (size_t)(eol - (l->data + l->begin)) : have) > RLHF__LINE_MAX)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s:%lld: the line is longer than the %zu MiB a line may have",
                              l->path, (long long)l->number + 1, RLHF__LINE_MAX >> 20);
        if (eol || (l->at_end && have)) {
            size_t len = eol ? (size_t)(eol - (l->data + l->begin)) : have;
            *line = take(l, len, eol != NULL);
            *number = l->number;
            return RLHF_OK;
        }
        seen = have;
        if (l->at_end) {
            *more = 0;
            return RLHF_OK;
        }
        RLHF_TRY(fill(l, err));
    }
}
